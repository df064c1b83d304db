//! A file in blocks of whole lines.

use std::fs::File;
use std::io::{Read, Result};

/// Reads a file block by block.
pub(crate) struct Blocks {
    file: File,
    /// What was read beyond the last whole line.
    rest: Vec<u8>,
    pub(crate) total: u64,
    /// Bytes handed out.
    pub(crate) taken: u64,
    ended: bool,
}

const BLOCK: usize = 8 << 20;

impl Blocks {
    pub(crate) fn open(path: &str) -> Result<Self> {
        let file = File::open(path)?;
        let total = file.metadata()?.len();
        Ok(Self {
            file,
            rest: Vec::new(),
            total,
            taken: 0,
            ended: false,
        })
    }

    /// Fills `block` with whole lines (the last of the file may lack its end);
    /// empty at the end.
    pub(crate) fn next(&mut self, block: &mut Vec<u8>) -> Result<()> {
        block.clear();
        block.append(&mut self.rest);
        let mut searched = 0;
        while !self.ended {
            let start = block.len();
            let read = (&mut self.file).take(BLOCK as u64).read_to_end(block)?;
            self.ended = read == 0;
            if let Some(end) = last_line_end(&block[searched..]) {
                if block.len() >= BLOCK || self.ended {
                    let end = if self.ended {
                        block.len()
                    } else {
                        searched + end
                    };
                    self.rest.extend_from_slice(&block[end..]);
                    block.truncate(end);
                    break;
                }
            } else {
                searched = start;
            }
        }
        self.taken += block.len() as u64;
        Ok(())
    }
}

fn last_line_end(bytes: &[u8]) -> Option<usize> {
    bytes.iter().rposition(|b| *b == b'\n').map(|at| at + 1)
}

/// Splits a block between lines into about `parts` pieces.
pub(crate) fn pieces(block: &[u8], parts: usize) -> Vec<&[u8]> {
    let size = (block.len() / parts.max(1)).max(1 << 14);
    let mut pieces = Vec::new();
    let mut rest = block;
    while !rest.is_empty() {
        let from = size.min(rest.len()) - 1;
        let end = rest[from..].iter().position(|b| *b == b'\n');
        let (piece, after) = rest.split_at(end.map_or(rest.len(), |end| from + end + 1));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn blocks_and_pieces_hold_whole_lines_and_all_of_them() {
        let path = std::env::temp_dir().join(format!("warrant-blocks-{}", std::process::id()));
        let path = path.to_str().expect("a plain path");
        let long = "x".repeat(BLOCK * 2 + 5);
        for text in [
            "",
            "\n",
            "a",
            "a\nb\n",
            "a\nb",
            &format!("{long}\nb\n{long}"),
        ] {
            File::create(path)
                .and_then(|mut f| f.write_all(text.as_bytes()))
                .expect("written");
            let mut blocks = Blocks::open(path).expect("there");
            let mut all = Vec::new();
            let mut block = Vec::new();
            loop {
                blocks.next(&mut block).expect("readable");
                if block.is_empty() {
                    break;
                }
                assert_eq!(pieces(&block, 3).concat(), block);
                all.extend_from_slice(&block);
                let whole = all.len() == text.len() || block.ends_with(b"\n");
                assert!(whole, "a block ends in the middle of a line");
            }
            assert_eq!(all.len(), text.len());
            assert_eq!(blocks.taken, text.len() as u64);
        }
        std::fs::remove_file(path).expect("removed");
    }
}
