//! What a job may write, and whether it may use the network.
