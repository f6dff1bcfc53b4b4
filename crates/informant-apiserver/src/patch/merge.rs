//! JSON merge patch (RFC 7386).
