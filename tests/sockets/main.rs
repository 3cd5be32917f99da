//! What needs a real socket: streams that stay open, chunked bodies, and an orderly end.
