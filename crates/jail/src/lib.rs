//! Files below an open directory handle: paths that cannot leave their root, atomic writes, locks.
