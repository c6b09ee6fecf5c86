//! Launches and drives tool providers the way the kernel does: sessions, approval, concurrency, answers.
