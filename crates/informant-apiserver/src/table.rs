//! Table answers: what kubectl prints.
