//! Walks over an object's protobuf bytes along the paths of a plan.
//!
//! It goes into the messages, lists and maps that paths lead through; any other field is passed by its length. What JSON
//! would show of the same object decides what's there: a field that isn't set, but that Go's JSON shows, is found.

use std::fmt;

use serde::de::{Deserializer as _, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::found::{Hits, Raw};
use super::json;
use super::plan::{Node, Pick};
use crate::error::DecodeError;
use crate::protobuf::{Error, Inside, Object, Value};

/// What the paths below `root` lead to in the object.
pub(super) fn walk<'a>(root: &'a Node, object: &Object<'a>, fields: usize) -> Result<Hits<'a>, DecodeError> {
    let mut hits = Hits::new(fields);
    into(root, object.inside()?, &mut hits)?;
    Ok(hits)
}

fn value<'a>(node: &'a Node, value: Value<'a>, hits: &mut Hits<'a>) -> Result<(), Error> {
    hits.push(&node.leaves, Raw::Protobuf(value));
    if node.goes_on() { into(node, value.inside()?, hits) } else { Ok(()) }
}

fn into<'a>(node: &'a Node, inside: Inside<'a>, hits: &mut Hits<'a>) -> Result<(), Error> {
    match inside {
        Inside::Null => Ok(()),
        Inside::Fields(mut fields) => object(node, || fields.next_field(), hits),
        Inside::Map(mut entries) => object(node, || entries.next_entry(), hits),
        Inside::List(mut items) => list(node, || items.next_item(), hits),
        Inside::Json(text) => json::walk_on(node, text, hits).map_err(Error::custom),
        Inside::Plain(found) => {
            hits.push(&node.keyed, Raw::Wrong(node, found));
            hits.push(&node.picked, Raw::Wrong(node, found));
            Ok(())
        }
    }
}

fn object<'a>(
    node: &'a Node,
    mut next: impl FnMut() -> Result<Option<(&'a str, Value<'a>)>, Error>,
    hits: &mut Hits<'a>,
) -> Result<(), Error> {
    hits.push(&node.picked, Raw::Wrong(node, "an object"));
    let before = hits.len();
    while let Some((key, found)) = next()? {
        if let Some((_, child)) = node.keys.iter().find(|(name, _)| *name == key) {
            // Of a map's key that's there twice the last counts.
            if hits.len() > before {
                hits.forget(before, child);
            }
            value(child, found, hits).map_err(|error| error.below(key))?;
        }
    }
    Ok(())
}

fn list<'a>(
    node: &'a Node,
    mut next: impl FnMut() -> Result<Option<Value<'a>>, Error>,
    hits: &mut Hits<'a>,
) -> Result<(), Error> {
    hits.push(&node.keyed, Raw::Wrong(node, "a list"));
    // Which of the first 64 picks by value have got their element. Of others the first hit counts, later ones are lost.
    let mut done = 0_u64;
    let mut position = 0;
    while let Some(item) = next()? {
        for (number, (pick, child)) in node.picks.iter().enumerate() {
            let bit = u32::try_from(number).ok().and_then(|number| 1_u64.checked_shl(number)).unwrap_or_default();
            let picked = match pick {
                Pick::Each => true,
                Pick::At(wanted) => *wanted == position,
                Pick::Where(key, wanted) => done & bit == 0 && has(item, key, wanted)?,
            };
            if picked {
                done |= bit;
                value(child, item, hits).map_err(|error| error.at(position))?;
            }
        }
        position += 1;
    }
    Ok(())
}

/// Whether a value is an object with this scalar under this key.
fn has(value: Value<'_>, key: &str, wanted: &str) -> Result<bool, Error> {
    let is = |found: Value<'_>| found.deserialize_any(Is(wanted));
    let mut has = false;
    match value.inside()? {
        Inside::Fields(mut fields) => {
            while let Some((name, found)) = fields.next_field()? {
                has = if name == key { is(found)? } else { has };
            }
        }
        Inside::Map(mut entries) => {
            while let Some((name, found)) = entries.next_entry()? {
                has = if name == key { is(found)? } else { has };
            }
        }
        Inside::Json(text) => return json::has(text, key, wanted).map_err(Error::custom),
        Inside::Null | Inside::List(_) | Inside::Plain(_) => {}
    }
    Ok(has)
}

/// Whether a value is a scalar that's written like this.
struct Is<'w>(&'w str);

impl<'de> Visitor<'de> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        Ok(text == self.0)
    }

    fn visit_bool<E>(self, value: bool) -> Result<bool, E> {
        Ok(self.0 == if value { "true" } else { "false" })
    }

    fn visit_i64<E>(self, number: i64) -> Result<bool, E> {
        Ok(self.0.parse() == Ok(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<bool, E> {
        Ok(self.0.parse() == Ok(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<bool, E> {
        Ok(self.0.parse() == Ok(number))
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(self.0 == "null")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(false)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(false)
    }
}

#[cfg(test)]
mod tests;
