//! hashicorp/go-plugin's process contract, both sides, over gRPC.
