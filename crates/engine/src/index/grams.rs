//! What a text is made of: every run of three bytes within a line, large ASCII letters taken as small. One set serves
//! searches that tell cases apart and those that do not.

/// Three bytes, the first one highest.
pub type Gram = u32;

/// How many different grams there can be.
const GRAMS: usize = 1 << 24;
const WORD_BITS: usize = 64;

/// Finds the different grams of texts, one text after the other.
pub struct Grams {
    /// One bit for each gram that the present text has.
    seen: Vec<u64>,
    found: Vec<Gram>,
}

impl Default for Grams {
    fn default() -> Self {
        Self { seen: vec![0; GRAMS / WORD_BITS], found: Vec::new() }
    }
}

impl Grams {
    /// The different grams of a text, in the order they first stand.
    pub fn of(&mut self, text: &str) -> &[Gram] {
        for gram in self.found.drain(..) {
            self.seen[gram as usize / WORD_BITS] = 0;
        }
        let (seen, found) = (&mut self.seen, &mut self.found);
        each(text.as_bytes(), |gram| {
            let (word, bit) = (gram as usize / WORD_BITS, 1_u64 << (gram as usize % WORD_BITS));
            if seen[word] & bit == 0 {
                seen[word] |= bit;
                found.push(gram);
            }
        });
        &self.found
    }
}

/// Every gram of these bytes, as often as it stands.
pub(super) fn each(bytes: &[u8], mut gram: impl FnMut(Gram)) {
    let (mut run, mut length) = (0_u32, 0_u8);
    for byte in bytes {
        if *byte == b'\n' {
            length = 0;
            continue;
        }
        run = (run << 8 | u32::from(byte.to_ascii_lowercase())) & 0xff_ffff;
        length = (length + 1).min(3);
        if length == 3 {
            gram(run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let mut grams = Grams::default();
        // What an earlier text had is forgotten.
        grams.of("abcdef unrelated\n");
        let show = |gram: &Gram| String::from_utf8_lossy(&gram.to_be_bytes()[1..]).into_owned();
        grams.of(text).iter().map(show).collect()
    }

    #[test]
    fn grams_stay_in_a_line_and_stand_once() {
        assert_eq!(shown("aBcab\ncabc\r\n\nab"), ["abc", "bca", "cab", "bc\r"]);
        assert_eq!(shown("ab"), Vec::<String>::new());
        assert_eq!(shown("é1"), ["é1"]);
    }
}
