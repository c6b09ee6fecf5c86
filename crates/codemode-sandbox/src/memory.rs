//! The memory of JavaScript: counted, limited, and remembered once it was not enough.

use std::sync::atomic::{AtomicBool, Ordering};

use rquickjs::allocator::Allocator;

use crate::clock::{ALLOWED, USED};

/// Memory was asked for and refused, at least once.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// Whether memory was refused. From then on the result is known, whatever the program makes of it.
pub(crate) fn refused() -> bool {
    REFUSED.load(Ordering::Relaxed)
}

/// Sets how much may be kept.
pub(crate) fn allow(bytes: usize) {
    ALLOWED.store(bytes, Ordering::Relaxed);
}

/// The allocator of the one engine of this process. It counts in [`USED`], where a signal handler can see it.
pub(crate) struct Counted;

impl Counted {
    /// Whether so many bytes more may be kept.
    fn admits(more: usize) -> bool {
        let allowed = USED.load(Ordering::Relaxed).saturating_add(more) <= ALLOWED.load(Ordering::Relaxed);
        if !allowed {
            REFUSED.store(true, Ordering::Relaxed);
        }
        allowed
    }

    /// Counts what the system has given.
    fn given(pointer: *mut u8) -> *mut u8 {
        if pointer.is_null() {
            REFUSED.store(true, Ordering::Relaxed);
        } else {
            USED.fetch_add(size(pointer), Ordering::Relaxed);
        }
        pointer
    }
}

/// The usable size of a block.
#[allow(unsafe_code)] // Only called with pointers that `malloc` has given and `free` has not taken.
fn size(pointer: *mut u8) -> usize {
    // SAFETY: as above; null has the size 0.
    unsafe { libc::malloc_usable_size(pointer.cast()) }
}

// SAFETY: every block comes from the C allocator, whose blocks are aligned for every type and at least as large as asked
// for; a refusal is a null pointer.
#[allow(unsafe_code)] // The trait is unsafe.
unsafe impl Allocator for Counted {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if !Self::admits(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: any size may be asked for.
        Self::given(unsafe { libc::malloc(size) }.cast())
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        if !Self::admits(count.saturating_mul(size)) {
            return std::ptr::null_mut();
        }
        // SAFETY: any size may be asked for; the product is checked by the C allocator, too.
        Self::given(unsafe { libc::calloc(count, size) }.cast())
    }

    unsafe fn dealloc(&mut self, pointer: *mut u8) {
        if pointer.is_null() {
            return;
        }
        USED.fetch_sub(size(pointer), Ordering::Relaxed);
        // SAFETY: the caller frees what this allocator gave, once.
        unsafe { libc::free(pointer.cast()) };
    }

    unsafe fn realloc(&mut self, pointer: *mut u8, new_size: usize) -> *mut u8 {
        let old = size(pointer);
        if !Self::admits(new_size.saturating_sub(old)) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller resizes what this allocator gave. Where this fails the old block stays as it is.
        let moved: *mut u8 = unsafe { libc::realloc(pointer.cast(), new_size) }.cast();
        if moved.is_null() {
            if new_size > 0 {
                REFUSED.store(true, Ordering::Relaxed);
                return moved;
            }
            USED.fetch_sub(old, Ordering::Relaxed);
            return moved;
        }
        USED.fetch_sub(old, Ordering::Relaxed);
        Self::given(moved)
    }

    unsafe fn usable_size(pointer: *mut u8) -> usize {
        size(pointer)
    }
}
