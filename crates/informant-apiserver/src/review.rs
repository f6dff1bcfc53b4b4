//! Kinds that store nothing: access reviews, self subject reviews, tokens.
