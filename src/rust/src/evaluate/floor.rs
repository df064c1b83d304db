//! The floor that the benchmark stands on: the same file through a plain typed
//! parser, on the same threads, with no rule checked and nothing judged.

use super::file::{pieces, Blocks};
use super::problem::Refused;
use super::threads::{on_threads, threads};
use super::{boxed, Result};
use warrant_core::plain;

/// Steps in all lines that can be read.
pub(super) fn steps(path: &str) -> Result<f64> {
    let unreadable = |e: std::io::Error| boxed(Refused::file(path, &e));
    let mut blocks = Blocks::open(path).map_err(unreadable)?;
    let mut block = Vec::new();
    let mut total = 0usize;
    blocks.next(&mut block).map_err(unreadable)?;
    while !block.is_empty() {
        let lines = pieces(&block, threads() * 4);
        let read = || {
            let mut following = Vec::new();
            blocks.next(&mut following).map(|()| following)
        };
        let count = |piece: &&[u8], _: &mut ()| {
            let text = std::str::from_utf8(piece).unwrap_or_default();
            text.lines().filter_map(plain::steps).sum::<usize>()
        };
        let (counts, following) = on_threads(&lines, threads(), read, count);
        total += counts.into_iter().sum::<usize>();
        block = following.map_err(unreadable)?;
    }
    Ok(total as f64)
}
