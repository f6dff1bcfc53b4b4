//! When a dictionary is trained, and on what. Pure: it's told of each document and what became of it.
//!
//! The first dictionary is made of the first documents. A list comes in the order of the keys, so these may be of one
//! namespace; when documents are seen to take more than those that it was trained on, samples are gathered, spread
//! over as many documents as came so far, and a new one is trained. The documents between two trainings grow by a
//! factor, so that their number stays small.

/// How many documents a dictionary is trained on.
const SAMPLES: usize = 256;
/// How many bytes they may have in all.
const SAMPLE_BYTES: usize = 4 << 20;
/// After how many times the documents so far the dictionary is looked at again.
const GROWTH: u64 = 4;
/// At most so many documents pass between two looks.
const INTERVAL_MAX: u64 = 1 << 18;
/// How much worse than at its training a dictionary may do.
const TOLERANCE: f32 = 1.15;
/// How many dictionaries an informer has at most: objects keep the one that they were packed with.
const DICTIONARIES: usize = 12;

/// Documents to train on.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Samples {
    pub(super) bytes: Vec<u8>,
    pub(super) sizes: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct Trainer {
    seen: u64,
    phase: Phase,
    /// Since the dictionary at hand was made: bytes of documents and of what became of them.
    plain: u64,
    packed: u64,
    /// What the dictionary did on what it was trained on.
    ratio: f32,
    dictionaries: usize,
}

#[derive(Debug)]
enum Phase {
    /// Takes every document whose number is a multiple of `stride`.
    Sampling {
        samples: Samples,
        stride: u64,
    },
    Training,
    Watching {
        until: u64,
    },
    Done,
}

impl Default for Trainer {
    fn default() -> Self {
        let phase = Phase::Sampling { samples: Samples::default(), stride: 1 };
        Self { seen: 0, phase, plain: 0, packed: 0, ratio: 1.0, dictionaries: 0 }
    }
}

impl Trainer {
    /// A document came and takes this much now. Returns the documents to train on, if it's time.
    pub(super) fn saw(&mut self, document: &[u8], packed: usize) -> Option<Samples> {
        self.seen += 1;
        self.plain += document.len() as u64;
        self.packed += packed as u64;
        match &mut self.phase {
            Phase::Sampling { samples, stride } => {
                if self.seen.is_multiple_of(*stride) {
                    samples.push(document);
                }
                if samples.is_full() {
                    let samples = std::mem::take(samples);
                    self.phase = Phase::Training;
                    return Some(samples);
                }
            }
            Phase::Watching { until } if self.seen >= *until => {
                // The numbers are far below what a float holds exactly enough for this.
                let ratio = self.packed as f32 / self.plain.max(1) as f32;
                self.phase = if ratio > self.ratio * TOLERANCE {
                    Phase::Sampling {
                        samples: Samples::default(),
                        stride: (self.seen.min(INTERVAL_MAX) / SAMPLES as u64).max(1),
                    }
                } else {
                    Phase::Watching { until: self.next_look() }
                };
                (self.plain, self.packed) = (0, 0);
            }
            Phase::Training | Phase::Watching { .. } | Phase::Done => {}
        }
        None
    }

    /// A dictionary was made; on its samples it came to this ratio.
    pub(super) fn trained(&mut self, ratio: f32) {
        self.ratio = ratio;
        self.dictionaries += 1;
        (self.plain, self.packed) = (0, 0);
        self.phase =
            if self.dictionaries < DICTIONARIES { Phase::Watching { until: self.next_look() } } else { Phase::Done };
    }

    /// None could be made. There's another try when more have come.
    pub(super) fn failed(&mut self) {
        self.ratio = 0.0;
        self.phase = Phase::Watching { until: self.next_look() };
    }

    pub(super) fn bytes(&self) -> usize {
        match &self.phase {
            Phase::Sampling { samples, .. } => samples.bytes.capacity() + samples.sizes.capacity() * size_of::<usize>(),
            Phase::Training | Phase::Watching { .. } | Phase::Done => 0,
        }
    }

    fn next_look(&self) -> u64 {
        self.seen + (self.seen * (GROWTH - 1)).min(INTERVAL_MAX)
    }
}

// === impl Samples ===

impl Samples {
    fn push(&mut self, document: &[u8]) {
        // A single one mustn't be all that a dictionary knows.
        if document.len() <= SAMPLE_BYTES / 16 {
            self.bytes.extend_from_slice(document);
            self.sizes.push(document.len());
        }
    }

    fn is_full(&self) -> bool {
        self.sizes.len() >= SAMPLES || self.bytes.len() >= SAMPLE_BYTES
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        self.sizes.iter().map_while(move |size| {
            let (one, tail) = rest.split_at_checked(*size)?;
            rest = tail;
            Some(one)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows so many documents, each of which becomes this much; returns how many it was asked to train on, and when.
    fn show(trainer: &mut Trainer, documents: u64, packed: usize) -> Vec<(u64, usize)> {
        let mut trainings = Vec::new();
        for _ in 0..documents {
            if let Some(samples) = trainer.saw(&[b'x'; 1000], packed) {
                trainings.push((trainer.seen, samples.iter().count()));
                trainer.trained(0.1);
            }
        }
        trainings
    }

    #[test]
    fn the_first_documents_make_the_first_dictionary() {
        let mut trainer = Trainer::default();
        assert_eq!(show(&mut trainer, 300, 100), [(256, 256)]);
        assert_eq!(trainer.bytes(), 0);
    }

    #[test]
    fn a_dictionary_that_does_as_well_as_on_its_samples_stays() {
        let mut trainer = Trainer::default();
        show(&mut trainer, 256, 1000);
        assert_eq!(show(&mut trainer, 1_000_000, 110), []);
    }

    #[test]
    fn one_that_does_worse_is_replaced_and_the_next_is_trained_on_samples_from_all_over() {
        let mut trainer = Trainer::default();
        show(&mut trainer, 256, 1000);
        let trainings = show(&mut trainer, 100_000, 150);
        assert_eq!(trainings.first().map(|(seen, samples)| (*seen < 2_100, *samples)), Some((true, 256)));
        assert!(trainings.len() < 6, "{trainings:?}");
    }

    #[test]
    fn the_number_of_dictionaries_is_bounded_whatever_comes() {
        let mut trainer = Trainer::default();
        let trainings = show(&mut trainer, 20_000_000, 900);
        assert_eq!(trainings.len(), DICTIONARIES);
    }

    #[test]
    fn large_documents_are_bounded_in_bytes() {
        let mut trainer = Trainer::default();
        let large = vec![b'x'; SAMPLE_BYTES / 16];
        let first = (1..).find(|_| trainer.saw(&large, 10).is_some());
        assert_eq!(first, Some(16));
        let mut trainer = Trainer::default();
        assert!((0..10_000).all(|_| trainer.saw(&vec![b'x'; SAMPLE_BYTES / 16 + 1], 10).is_none()));
        assert_eq!(trainer.bytes(), 0);
    }
}
