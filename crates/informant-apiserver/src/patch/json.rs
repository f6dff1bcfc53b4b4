//! JSON patch (RFC 6902).
