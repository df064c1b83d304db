//! Judging a file block by block, for a slice of time.

use super::engine::Scratch;
use super::file::pieces;
use super::problem::Refused;
use super::state::Evaluation;
use super::threads::{on_threads, threads};
use super::{boxed, Result};
use std::time::{Duration, Instant};

impl Evaluation {
    /// Judges blocks of the file for about so long; whether there is more.
    pub(super) fn advance(&mut self, seconds: f64) -> Result<bool> {
        let Some(mut blocks) = self.blocks.take() else {
            return Ok(false);
        };
        let name = self.name.clone().unwrap_or_default();
        let unreadable = |e: std::io::Error| boxed(Refused::file(&name, &e));
        let until = Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 60.0));
        let threads = threads();
        let mut block = Vec::new();
        blocks.next(&mut block).map_err(unreadable)?;
        while !block.is_empty() {
            let mut offset = blocks.taken - block.len() as u64;
            let more = Instant::now() < until;
            let engine = &self.engine;
            let lines = pieces(&block, threads * 4);
            let sizes: Vec<u64> = lines.iter().map(|piece| piece.len() as u64).collect();
            // The next block is read while this one is judged.
            let read = || {
                let mut following = Vec::new();
                let read = if more {
                    blocks.next(&mut following)
                } else {
                    Ok(())
                };
                read.map(|()| following)
            };
            let judge = |piece: &&[u8], scratch: &mut Scratch| engine.lines(piece, scratch);
            let (parts, following) = on_threads(&lines, threads, read, judge);
            for (part, size) in parts.into_iter().zip(sizes) {
                self.merge(part, offset)?;
                offset += size;
            }
            block = following.map_err(unreadable)?;
        }
        let more = blocks.taken < blocks.total;
        self.blocks = Some(blocks);
        Ok(more)
    }
}
