//! Compressing and decompressing with a dictionary.

use std::io;
use std::sync::{Arc, Mutex};

use zstd::bulk::Compressor;
use zstd::dict::DecoderDictionary;
use zstd::zstd_safe::{self, DCtx};

use super::Pack;
use super::training::Samples;
use crate::document::{Document, Encoding};
use crate::lock::lock;

/// The level at which objects are compressed: higher ones gain a few percent for a third more time.
const LEVEL: i32 = 1;
/// How large a dictionary is.
const DICTIONARY_BYTES: usize = 64 << 10;
/// How many decompressors are kept for the next reader.
const IDLE_MAX: usize = 4;

/// A dictionary, and the compressor that knows it.
pub(super) struct Dictionary {
    compressor: Compressor<'static>,
    decoder: Arc<DecoderDictionary<'static>>,
    buffer: Vec<u8>,
}

/// How the bytes of some objects are to be read.
pub(super) struct Codec<K> {
    pack: Arc<Pack<K>>,
    encoding: Encoding,
    dictionary: Option<Arc<DecoderDictionary<'static>>>,
}

/// Decompressors and their buffers for the next readers.
#[derive(Default)]
pub(super) struct Buffers {
    idle: Mutex<Vec<(DCtx<'static>, Vec<u8>)>>,
}

// === impl Dictionary ===

impl Dictionary {
    /// Trains a dictionary, and tells what it does on the samples: compressed bytes per byte. `None` if they have nothing
    /// in common, or are too few.
    pub(super) fn train(samples: &Samples) -> Option<(Self, f32)> {
        let content = zstd::dict::from_continuous(&samples.bytes, &samples.sizes, DICTIONARY_BYTES).ok()?;
        let mut dictionary = Self::of(&content).ok()?;
        let mut packed = 0;
        for sample in samples.iter() {
            packed += dictionary.compress(sample).map_or(sample.len(), |bytes| bytes.len());
        }
        // Both are below four megabytes.
        let ratio = packed as f32 / samples.bytes.len().max(1) as f32;
        dictionary.buffer = Vec::new();
        Some((dictionary, ratio))
    }

    fn of(content: &[u8]) -> io::Result<Self> {
        let mut compressor = Compressor::with_dictionary(LEVEL, content)?;
        // An object knows its dictionary, and memory keeps what's in it.
        compressor.include_dictid(false)?;
        compressor.include_checksum(false)?;
        compressor.include_contentsize(true)?;
        Ok(Self { compressor, decoder: Arc::new(DecoderDictionary::copy(content)), buffer: Vec::new() })
    }

    /// The document compressed; `None` if that saves less than an eighth, which isn't worth the reading.
    pub(super) fn compress(&mut self, document: &[u8]) -> Option<Box<[u8]>> {
        self.buffer.clear();
        self.buffer.reserve(zstd_safe::compress_bound(document.len()));
        self.compressor.compress_to_buffer(document, &mut self.buffer).ok()?;
        let packed = (self.buffer.len() < document.len() - document.len() / 8).then(|| Box::from(&*self.buffer));
        if self.buffer.capacity() > 1 << 20 {
            // One huge object mustn't keep its buffer.
            self.buffer = Vec::new();
        }
        packed
    }

    pub(super) fn decoder(&self) -> Arc<DecoderDictionary<'static>> {
        Arc::clone(&self.decoder)
    }

    pub(super) fn bytes(&self) -> usize {
        self.buffer.capacity()
    }
}

// === impl Codec ===

impl<K> Codec<K> {
    pub(super) fn new(
        pack: &Arc<Pack<K>>,
        encoding: Encoding,
        dictionary: Option<Arc<DecoderDictionary<'static>>>,
    ) -> Self {
        Self { pack: Arc::clone(pack), encoding, dictionary }
    }

    pub(super) fn pack(&self) -> &Arc<Pack<K>> {
        &self.pack
    }

    pub(super) fn is_compressed(&self) -> bool {
        self.dictionary.is_some()
    }

    pub(super) fn dictionary_bytes(&self) -> usize {
        self.dictionary.as_ref().map_or(0, |dictionary| dictionary.as_ddict().sizeof())
    }

    /// Looks at the document that these bytes are of.
    pub(super) fn with_document<T>(&self, bytes: &[u8], look: impl FnOnce(&Document<'_>) -> T) -> T {
        let Some(dictionary) = &self.dictionary else { return look(&self.document(bytes)) };
        let (mut decompressor, mut buffer) = self.pack.buffers.take();
        buffer.clear();
        let size = zstd_safe::get_frame_content_size(bytes).ok().flatten().unwrap_or(0);
        // We compressed it, so it's no larger than memory.
        buffer.reserve(usize::try_from(size).unwrap_or(0));
        if decompressor.decompress_using_ddict(&mut buffer, bytes, dictionary.as_ddict()).is_err() {
            // What memory keeps doesn't change; were it so, an empty document is an error to whoever reads it.
            buffer.clear();
        }
        let seen = look(&self.document(&buffer));
        self.pack.buffers.put_back(decompressor, buffer);
        seen
    }

    /// The document that these uncompressed bytes are.
    pub(super) fn document<'a>(&self, bytes: &'a [u8]) -> Document<'a> {
        Document::stored(self.encoding, bytes)
    }
}

// === impl Buffers ===

impl Buffers {
    fn take(&self) -> (DCtx<'static>, Vec<u8>) {
        lock(&self.idle).pop().unwrap_or_else(|| (DCtx::create(), Vec::new()))
    }

    fn put_back(&self, decompressor: DCtx<'static>, mut buffer: Vec<u8>) {
        if buffer.capacity() > 256 << 10 {
            buffer = Vec::new();
        }
        let mut idle = lock(&self.idle);
        if idle.len() < IDLE_MAX {
            idle.push((decompressor, buffer));
        }
    }

    pub(super) fn bytes(&self) -> usize {
        lock(&self.idle).iter().map(|(decompressor, buffer)| decompressor.sizeof() + buffer.capacity()).sum()
    }
}
