//! Objects kept as the bytes that the server sent, compressed, and decoded when read.
//!
//! `managedFields` are left out, and the rest is compressed with a dictionary that's trained on the first objects of
//! the informer: objects of one kind are alike, so that a Pod of six kilobytes takes a tenth of that. What doesn't get
//! smaller is kept as it is, as is everything on request ([raw](crate::InformerBuilder::raw)).
//!
//! What's kept was checked when it was taken in, so that it can be read later without failing.

mod codec;
mod hot;
#[cfg(test)]
mod tests;
mod training;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;

use self::codec::{Codec, Dictionary};
use self::hot::Hot;
use self::training::{Samples, Trainer};
use crate::document::{Document, Encoding};
use crate::error::DecodeError;
use crate::json::Form;
use crate::lock::lock;
use crate::representation::{Full, Held, Representation};
use crate::selector::Selector;

/// An object as its bytes. A handle of the store's; reading it decodes it.
pub struct PackedObject<K> {
    codec: Arc<Codec<K>>,
    /// Compressed if the codec has a dictionary and it paid.
    bytes: Box<[u8]>,
    /// No two objects of an informer have the same, so that it names this state in the cache of decoded objects.
    serial: u64,
}

/// Finds out whether a document can be decoded.
type Check = dyn Fn(&Document<'_>) -> Result<(), DecodeError> + Send + Sync;

/// Makes something of a document.
type Reads<T> = Box<dyn Fn(&Document<'_>) -> T + Send + Sync>;

/// Keeps objects packed.
pub(crate) struct Packed<K> {
    pack: Arc<Pack<K>>,
    compress: bool,
    managed_fields: bool,
    accept: &'static str,
    check: Box<Check>,
    protobuf: bool,
    encode: fn(&K) -> serde_json::Result<Vec<u8>>,
    /// Taken while an object is compressed, and never together with another lock.
    streams: Arc<Mutex<Streams<K>>>,
    next_serial: AtomicU64,
}

/// What the objects of an informer share.
pub(crate) struct Pack<K> {
    decode: Reads<Result<K, DecodeError>>,
    /// What the decoded object takes.
    size: Reads<usize>,
    hot: Hot<K>,
    buffers: codec::Buffers,
}

/// How documents are compressed at present, for each form in which they come.
struct Streams<K> {
    streams: Vec<Stream<K>>,
    /// Every dictionary that some object may still need.
    codecs: Vec<Weak<Codec<K>>>,
}

struct Stream<K> {
    encoding: Encoding,
    plain: Arc<Codec<K>>,
    packed: Option<(Dictionary, Arc<Codec<K>>)>,
    trainer: Trainer,
    /// The first training, which what comes next waits for.
    first: Option<BoxFuture<'static, ()>>,
}

// === impl Packed ===

impl<K> Packed<K>
where
    K: kube::Resource + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    pub(crate) fn new(full: Full<K>, compress: bool, managed_fields: bool) -> Self {
        let (accept, full) = (full.accept(), Arc::new(full));
        let form = Form::of::<K>(full.types());
        let protobuf = full.takes_protobuf();
        let pack = Pack {
            decode: Box::new({
                let full = Arc::clone(&full);
                move |document| full.decode(document)
            }),
            size: Box::new(move |document| full.size(document)),
            hot: Hot::default(),
            buffers: codec::Buffers::default(),
        };
        Self {
            pack: Arc::new(pack),
            compress,
            managed_fields,
            accept,
            check: Box::new(move |document| document.check::<K>(form)),
            protobuf,
            encode: serde_json::to_vec::<K>,
            streams: Arc::new(Mutex::new(Streams { streams: Vec::new(), codecs: Vec::new() })),
            next_serial: AtomicU64::new(0),
        }
    }
}

impl<K: Send + Sync + 'static> Packed<K> {
    fn pack(&self, document: &Document<'_>) -> PackedObject<K> {
        let mut streams = lock(&self.streams);
        let stream = streams.stream(&self.pack, document.encoding());
        let (codec, bytes) = stream.pack(document.bytes(), self.compress);
        if self.compress
            && let Some(samples) = stream.trainer.saw(document.bytes(), bytes.len())
        {
            let training = train(Arc::downgrade(&self.streams), document.encoding(), samples);
            if stream.packed.is_none() {
                stream.first = training;
            }
        }
        drop(streams);
        PackedObject { codec, bytes, serial: self.next_serial.fetch_add(1, Ordering::Relaxed) }
    }
}

/// Trains a dictionary in the background, and installs it; the future is done when it's installed. Without a runtime it
/// isn't trained.
fn train<K: Send + Sync + 'static>(
    streams: Weak<Mutex<Streams<K>>>,
    encoding: Encoding,
    samples: Samples,
) -> Option<BoxFuture<'static, ()>> {
    let runtime = Handle::try_current().ok()?;
    let work = runtime.spawn_blocking(move || {
        let trained = Dictionary::train(&samples);
        if let Some(streams) = streams.upgrade() {
            lock(&streams).install(encoding, trained);
        }
    });
    Some(work.map(|_| ()).boxed())
}

impl<K: Send + Sync + 'static> Representation<K> for Packed<K> {
    fn hold(&self, document: &Document<'_>) -> Result<Held<K>, DecodeError> {
        if self.managed_fields {
            (self.check)(document)?;
            return Ok(Held::Packed(self.pack(document)));
        }
        let trimmed = document.without_managed_fields();
        let trimmed = document.with_bytes(&trimmed);
        (self.check)(&trimmed)?;
        Ok(Held::Packed(self.pack(&trimmed)))
    }

    fn object(&self, document: &Document<'_>) -> Result<K, DecodeError> {
        (self.pack.decode)(document)
    }

    fn hold_unchanged(&self, _object: K, document: &Document<'_>) -> Result<Held<K>, DecodeError> {
        self.hold(document)
    }

    fn hold_object(&self, object: K) -> Result<Held<K>, DecodeError> {
        let text = (self.encode)(&object).map_err(DecodeError::from_json)?;
        self.hold(&Document::json(&text))
    }

    fn held_bytes(&self, held: &Held<K>, _document: &Document<'_>) -> usize {
        held.packed_bytes()
    }

    fn takes_protobuf(&self) -> bool {
        self.protobuf
    }

    fn settle(&self) -> Option<BoxFuture<'static, ()>> {
        lock(&self.streams).streams.iter_mut().find_map(|stream| stream.first.take())
    }

    fn improve(&self, held: &Held<K>) -> Option<Held<K>> {
        let Held::Packed(object) = held else { return None };
        if object.codec.is_compressed() || !self.compress {
            return None;
        }
        let document = object.codec.document(&object.bytes);
        let mut streams = lock(&self.streams);
        let stream = streams.stream(&self.pack, document.encoding());
        let (codec, bytes) = stream.pack(document.bytes(), true);
        codec.is_compressed().then(|| Held::Packed(PackedObject { codec, bytes, serial: object.serial }))
    }

    fn accept(&self) -> &'static str {
        self.accept
    }

    fn shared_bytes(&self) -> usize {
        lock(&self.streams).bytes() + self.pack.buffers.bytes() + self.pack.hot.bytes()
    }
}

// === impl Streams ===

impl<K> Streams<K> {
    fn stream(&mut self, pack: &Arc<Pack<K>>, encoding: Encoding) -> &mut Stream<K> {
        let position = match self.streams.iter().position(|stream| stream.encoding == encoding) {
            Some(position) => position,
            None => {
                self.streams.push(Stream {
                    encoding,
                    plain: Arc::new(Codec::new(pack, encoding, None)),
                    packed: None,
                    trainer: Trainer::default(),
                    first: None,
                });
                self.streams.len() - 1
            }
        };
        &mut self.streams[position]
    }

    fn install(&mut self, encoding: Encoding, trained: Option<(Dictionary, f32)>) {
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.encoding == encoding) else { return };
        match trained {
            Some((dictionary, ratio)) => {
                stream.trainer.trained(ratio);
                let codec = Arc::new(Codec::new(stream.plain.pack(), encoding, Some(dictionary.decoder())));
                self.codecs.retain(|codec| codec.strong_count() > 0);
                self.codecs.push(Arc::downgrade(&codec));
                stream.packed = Some((dictionary, codec));
            }
            // Objects that have nothing in common.
            None => stream.trainer.failed(),
        }
    }

    fn bytes(&self) -> usize {
        let compressors = self.streams.iter().filter_map(|stream| stream.packed.as_ref());
        let compressors: usize = compressors.map(|(dictionary, _)| dictionary.bytes()).sum();
        let samples: usize = self.streams.iter().map(|stream| stream.trainer.bytes()).sum();
        let dictionaries = self.codecs.iter().filter_map(|codec| Some(codec.upgrade()?.dictionary_bytes()));
        compressors + samples + dictionaries.sum::<usize>()
    }
}

impl<K> Stream<K> {
    fn pack(&mut self, document: &[u8], compress: bool) -> (Arc<Codec<K>>, Box<[u8]>) {
        if compress
            && let Some((dictionary, codec)) = &mut self.packed
            && let Some(bytes) = dictionary.compress(document)
        {
            return (Arc::clone(codec), bytes);
        }
        (Arc::clone(&self.plain), document.into())
    }
}

// === impl PackedObject ===

impl<K> PackedObject<K> {
    /// How many bytes it takes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Looks at the document.
    pub(crate) fn with_document<T>(&self, look: impl FnOnce(&Document<'_>) -> T) -> T {
        self.codec.with_document(&self.bytes, look)
    }

    pub(crate) fn read(&self) -> Arc<K> {
        let pack = self.codec.pack();
        if let Some(object) = pack.hot.get(self.serial) {
            return object;
        }
        self.with_document(|document| {
            let object = match (pack.decode)(document) {
                Ok(object) => Arc::new(object),
                Err(error) => unreadable(&error),
            };
            if Hot::<K>::takes(document.len()) {
                pack.hot.put(self.serial, &object, (pack.size)(document));
            }
            object
        })
    }

    pub(crate) fn matches(&self, selector: &Selector) -> bool {
        selector.is_everything() || self.with_document(|document| document.matches(selector))
    }
}

/// What was kept can't be read, though it was checked: a mistake of ours, or a type that reads the same text in two ways.
#[allow(clippy::panic, reason = "no outside data leads here: it was checked when it was taken in")]
fn unreadable(error: &DecodeError) -> ! {
    panic!("an object that was checked when it was taken in can't be read: {error}")
}

impl<K> fmt::Debug for PackedObject<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackedObject").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}
