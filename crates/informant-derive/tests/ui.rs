//! What the compiler says of projections that are wrong, and where.

#![allow(missing_docs)]

#[test]
fn what_is_wrong_with_a_projection_is_said_where_it_is() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
