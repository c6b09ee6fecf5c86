//! What a tool provider is built on: typed tools, schema, argument repair, errors, streaming, previews, kernel callbacks.
