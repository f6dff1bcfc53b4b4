//! A list: one JSON object whose `items` are split off while it arrives.

use bytes::Bytes;

use super::{Frame, FrameError, Gather, excerpt};
use crate::json::Nesting;

/// Splits `{"kind":…,"metadata":{…},"items":[{…},{…}]}` into its items; what's left over is the list without them.
#[derive(Debug)]
pub(crate) struct ListDecoder {
    chunk: Bytes,
    place: Place,
    scan: Nesting,
    item: Gather,
    /// The list with its items left out: valid JSON at the end.
    envelope: Vec<u8>,
    envelope_bytes_max: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    BeforeList,
    /// Among the list's own fields.
    Fields,
    BetweenItems,
    InItem,
    AfterList,
}

impl ListDecoder {
    pub(crate) fn new(document_bytes_max: usize) -> Self {
        Self {
            chunk: Bytes::new(),
            place: Place::BeforeList,
            scan: Nesting::default(),
            item: Gather::new(document_bytes_max),
            envelope: Vec::new(),
            envelope_bytes_max: document_bytes_max,
        }
    }

    /// Takes the next chunk. What came before must have been taken with [`next`](Self::next).
    pub(crate) fn push(&mut self, chunk: Bytes) {
        self.chunk = chunk;
    }

    /// The next whole item.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        while !self.chunk.is_empty() {
            match self.place {
                Place::BeforeList => self.enter_list()?,
                Place::Fields => self.read_fields()?,
                Place::BetweenItems => self.skip_between_items()?,
                Place::InItem => {
                    let Some(end) = self.scan.close(&self.chunk) else {
                        self.item.push(&std::mem::take(&mut self.chunk));
                        return Ok(None);
                    };
                    let last = self.chunk.split_to(end);
                    self.place = Place::BetweenItems;
                    return Ok(Some(self.item.finish(last)));
                }
                Place::AfterList => {
                    let rest = std::mem::take(&mut self.chunk);
                    expect_blank(&rest, "the end")?;
                }
            }
        }
        Ok(None)
    }

    /// The list's own fields as far as they came, as JSON, while its items come.
    pub(crate) fn fields(&self) -> Option<Vec<u8>> {
        let among_items = matches!(self.place, Place::BetweenItems | Place::InItem);
        among_items.then(|| [&self.envelope[..], b"]}"].concat())
    }

    /// The list without its items, once the body has ended.
    pub(crate) fn finish(self) -> Result<Vec<u8>, FrameError> {
        match self.place {
            Place::AfterList => Ok(self.envelope),
            Place::BeforeList | Place::Fields | Place::BetweenItems | Place::InItem => Err(FrameError::Cut),
        }
    }

    fn enter_list(&mut self) -> Result<(), FrameError> {
        let Some(start) = self.chunk.iter().position(|byte| !byte.is_ascii_whitespace()) else {
            self.chunk.clear();
            return Ok(());
        };
        if self.chunk.get(start) != Some(&b'{') {
            // Another server's page, most likely.
            let found = excerpt(self.chunk.get(start..).unwrap_or_default(), 40);
            return Err(FrameError::NotAList { expected: "an object", found });
        }
        let _blank = self.chunk.split_to(start);
        self.place = Place::Fields;
        Ok(())
    }

    fn read_fields(&mut self) -> Result<(), FrameError> {
        let mut taken = 0;
        for byte in &self.chunk {
            taken += 1;
            self.envelope.push(*byte);
            let opens_items = *byte == b'[' && !self.scan.in_string && self.scan.depth == 1;
            if opens_items && ends_with_items_key(&self.envelope) {
                self.place = Place::BetweenItems;
                // The items' own brackets are counted from zero.
                self.scan.depth = 0;
                break;
            }
            self.scan.step(*byte);
            if self.scan.depth == 0 && !self.scan.in_string {
                self.place = Place::AfterList;
                break;
            }
        }
        let _fields = self.chunk.split_to(taken);
        if self.envelope.len() > self.envelope_bytes_max {
            return Err(FrameError::TooLarge { limit: self.envelope_bytes_max });
        }
        Ok(())
    }

    fn skip_between_items(&mut self) -> Result<(), FrameError> {
        let between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
        let Some(start) = self.chunk.iter().position(|byte| !between(byte)) else {
            self.chunk.clear();
            return Ok(());
        };
        let _between = self.chunk.split_to(start);
        match self.chunk.first() {
            Some(b'{') => self.place = Place::InItem,
            Some(b']') => {
                self.envelope.push(b']');
                let _bracket = self.chunk.split_to(1);
                self.place = Place::Fields;
                self.scan.depth = 1;
            }
            _ => return Err(not_a_list("an item that is an object", &self.chunk)),
        }
        Ok(())
    }
}

/// Whether the fields so far end with the key `items` and this bracket. A text before a colon is always a key.
fn ends_with_items_key(fields: &[u8]) -> bool {
    let key = fields.strip_suffix(b"[").map(<[u8]>::trim_ascii_end);
    let key = key.and_then(|fields| fields.strip_suffix(b":")).map(<[u8]>::trim_ascii_end);
    let before = key.and_then(|fields| fields.strip_suffix(b"\"items\""));
    before.is_some_and(|before| !before.ends_with(b"\\"))
}

fn expect_blank(bytes: &[u8], expected: &'static str) -> Result<(), FrameError> {
    if bytes.iter().all(u8::is_ascii_whitespace) { Ok(()) } else { Err(not_a_list(expected, bytes)) }
}

fn not_a_list(expected: &'static str, found: &[u8]) -> FrameError {
    FrameError::NotAList { expected, found: excerpt(found, 1) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn decode(chunks: &[&[u8]], limit: usize) -> Result<(Vec<Frame>, Value), FrameError> {
        let mut decoder = ListDecoder::new(limit);
        let mut items = Vec::new();
        for chunk in chunks {
            decoder.push(Bytes::copy_from_slice(chunk));
            while let Some(frame) = decoder.next()? {
                items.push(frame);
            }
        }
        let envelope = decoder.finish()?;
        Ok((items, serde_json::from_slice(&envelope).expect("what's left is JSON")))
    }

    fn document(text: &str) -> Frame {
        Frame::Document(Bytes::copy_from_slice(text.as_bytes()))
    }

    const LIST: &str = r#" {"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","items":[1,{"a":2}]},"x":"items",
        "items" : [ {"a":"]}\"{\\","b":[[]]} ,{"c":{}},{}],"last":"é"} "#;

    #[test]
    fn items_are_whole_wherever_the_chunks_are_cut() {
        let items = [document(r#"{"a":"]}\"{\\","b":[[]]}"#), document(r#"{"c":{}}"#), document("{}")];
        let envelope = json!({"kind": "PodList", "apiVersion": "v1", "x": "items", "items": [], "last": "é",
            "metadata": {"resourceVersion": "7", "items": [1, {"a": 2}]}});
        for cut in 0..=LIST.len() {
            let (head, tail) = LIST.as_bytes().split_at(cut);
            let decoded = decode(&[head, tail], 1000).expect("a list");
            assert_eq!(decoded.0, items, "cut at {cut}");
            assert_eq!(decoded.1, envelope, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = LIST.as_bytes().chunks(1).collect();
        assert_eq!(decode(&bytes, 1000).expect("a list"), (items.into(), envelope));
    }

    #[test]
    fn a_list_without_items_is_empty() {
        for list in [r#"{"items":[]}"#, r#"{"items":null}"#, r#"{"kind":"PodList"}"#, "{}"] {
            assert_eq!(decode(&[list.as_bytes()], 1000).expect(list).0, []);
        }
    }

    #[test]
    fn of_an_item_beyond_the_bound_only_the_beginning_is_kept_and_the_next_is_whole() {
        let long = format!(r#"{{"x":"{}"}}"#, "y".repeat(50_000));
        let list = format!(r#"{{"items":[{long},{{"b":2}}]}}"#);
        for size in [11, 1_000, 100_000] {
            let chunks: Vec<&[u8]> = list.as_bytes().chunks(size).collect();
            let (items, _) = decode(&chunks, 20_000).expect("a list");
            let [Frame::TooLarge(prefix), second] = items.as_slice() else { panic!("{items:?}") };
            assert!(long.as_bytes().starts_with(prefix));
            assert_eq!(second, &document(r#"{"b":2}"#));
        }
    }

    #[test]
    fn what_is_no_list_is_an_error_that_shows_the_place() {
        for (text, shown) in [("<html>", "<html>"), ("[1]", "[1]"), (r#"{"items":[1]}"#, "\"1\""), ("{} x", "x")] {
            let error = decode(&[text.as_bytes()], 1000).expect_err(text).to_string();
            assert!(error.contains(shown), "{error}");
        }
        let fields = format!(r#"{{"x":"{}"}}"#, "y".repeat(3_000));
        assert_eq!(decode(&[fields.as_bytes()], 2_000), Err(FrameError::TooLarge { limit: 2_000 }));
    }

    #[test]
    fn an_end_within_a_list_is_an_error_at_every_byte() {
        let list = LIST.trim();
        for end in 0..list.len() {
            assert_eq!(decode(&[&list.as_bytes()[..end]], 1000), Err(FrameError::Cut), "end at {end}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), any::<i32>().prop_map(Value::from), ".*".prop_map(Value::from)];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".*", inner, 0..4).prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_list_is_split_into_its_items(
            items in prop::collection::vec(prop::collection::btree_map(".*", any_json(), 0..4), 0..5),
            metadata in any_json(),
            size in 1..50_usize,
        ) {
            let items: Vec<Value> = items.into_iter().map(|item| item.into_iter().collect()).collect();
            let list = json!({"before": metadata, "items": items, "metadata": metadata}).to_string();
            let chunks: Vec<&[u8]> = list.as_bytes().chunks(size).collect();
            let (found, envelope) = decode(&chunks, 1 << 20).expect("a list");
            let found: Vec<Value> = found.iter().map(|frame| match frame {
                Frame::Document(item) => serde_json::from_slice(item).expect("JSON"),
                Frame::TooLarge(_) => panic!("nothing is too large"),
            }).collect();
            prop_assert_eq!(found, items);
            prop_assert_eq!(&envelope["metadata"], &metadata);
        }

        #[test]
        fn no_bytes_make_it_fail_otherwise_than_by_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), size in 1..20_usize) {
            let mut decoder = ListDecoder::new(64);
            for chunk in [&b"{\"items\":["[..]].into_iter().chain(bytes.chunks(size)) {
                decoder.push(Bytes::copy_from_slice(chunk));
                while let Ok(Some(_)) = decoder.next() {}
            }
        }
    }
}
