//! SHA-256 and HMAC-SHA-256, and the digest as a type.

use crate::canon;
use crate::error::{Fault, Kind};
use hmac::{Hmac, KeyInit, Mac};
use serde::{de, Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// A SHA-256 digest; its text form is 64 lowercase hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest with these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// SHA-256 of some bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// SHA-256 of the canonical JSON of a value.
    pub fn of_value(value: &Value) -> Self {
        Self::of_bytes(&canon::to_vec(value))
    }

    /// SHA-256 of the canonical JSON of a text, without building it.
    pub fn of_string(text: &str) -> Self {
        let mut hasher = Sha256::new();
        canon::string_pieces(text, |piece| hasher.update(piece));
        Self(hasher.finalize().into())
    }

    /// HMAC-SHA-256 of some bytes under a key.
    pub fn keyed(key: &[u8; 32], bytes: &[u8]) -> Self {
        // HMAC pads a short key with zeros to the block of the hash (RFC 2104).
        let mut block = [0u8; 64];
        block[..32].copy_from_slice(key);
        let mut mac = <Hmac<Sha256> as KeyInit>::new(&block.into());
        mac.update(bytes);
        Self(mac.finalize().into_bytes().into())
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// 64 lowercase hex digits, as bytes.
    pub fn to_hex_bytes(&self) -> [u8; 64] {
        let mut out = [0; 64];
        for (pair, b) in out.chunks_exact_mut(2).zip(self.0) {
            pair[0] = HEX[usize::from(b >> 4)];
            pair[1] = HEX[usize::from(b & 15)];
        }
        out
    }

    /// 64 lowercase hex digits.
    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({})", self.to_hex())
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bytes = unhex(text).ok_or(Error::NotADigest)?;
        Ok(Self(bytes.try_into().map_err(|_| Error::NotADigest)?))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_hex())
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Hex;
        impl de::Visitor<'_> for Hex {
            type Value = Digest;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("64 lowercase hex digits")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Digest, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Hex)
    }
}

/// SHA-256 of bytes that come piece by piece.
#[derive(Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Nothing hashed yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes some more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all of them.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

/// Lowercase hex of some bytes.
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for b in bytes {
        out.push(char::from(HEX[usize::from(b >> 4)]));
        out.push(char::from(HEX[usize::from(b & 15)]));
    }
    out
}

/// The bytes of lowercase hex, or nothing where it is not that.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let nibble = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let bytes = text.as_bytes();
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    bytes
        .chunks_exact(2)
        .map(|pair| Some(nibble(pair[0])? << 4 | nibble(pair[1])?))
        .collect()
}

const HEX: [u8; 16] = *b"0123456789abcdef";

/// What can be wrong with a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not 64 lowercase hex digits.
    #[error("a digest must be 64 lowercase hex digits")]
    NotADigest,
}

impl Fault for Error {
    fn code(&self) -> &'static str {
        "not_a_digest"
    }
    fn kind(&self) -> Kind {
        Kind::Input
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        assert_eq!(
            Digest::of_bytes(b"abc").to_hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        // RFC 4231, test case 1 with the key padded to the block by HMAC itself.
        let mut key = [0u8; 32];
        key[..20].fill(0x0b);
        assert_eq!(
            Digest::keyed(&key, b"Hi There").to_hex(),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        );
    }

    #[test]
    fn a_text_hashes_as_its_canonical_json() {
        for text in ["", "plain", "q\" b\\ n\n nul\0 é\u{1f600}\u{1f}"] {
            assert_eq!(Digest::of_string(text), Digest::of_value(&text.into()));
        }
    }

    #[test]
    fn text_form_round_trips_and_refuses_others() {
        let d = Digest::of_bytes(b"x");
        assert_eq!(d.to_hex().parse(), Ok(d));
        for bad in ["", "ab", &d.to_hex().to_uppercase(), &"g".repeat(64), "é"] {
            assert_eq!(bad.parse::<Digest>(), Err(Error::NotADigest));
        }
    }
}
