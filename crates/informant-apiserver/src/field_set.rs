//! Sets of field paths, and their FieldsV1 form.
