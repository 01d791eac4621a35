//! How does a block keep memory alive, and let go of it exactly once?
//!
//! A block is a struct that begins with a class, flags and a function; behind these stands what it
//! captured. It starts out on the stack. Whoever keeps it copies it, and the copy helper adds a
//! reference to what was captured; the dispose helper takes one away. (Clang's block ABI has the
//! layout.)
//!
//! ```text
//!   Block on the stack ─┐
//!   Metal's copy of it ─┼──▶ Keeper ──AtomicPtr, swapped out once──▶ Arc<T>
//!   another copy       ─┘
//! ```
//!
//! The references to the keeper are counted, so it goes away with the last block; whether the block
//! was called never, once or twice before, the `Arc` in it is dropped once.

use super::runtime::runtime;
use std::ffi::{c_int, c_ulong, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A block of the type `void (^)(void *bytes, NSUInteger length)` that holds an `Arc<T>`, and drops
/// it when it is called, or when the last copy of it goes away.
pub struct Deallocator<T: Send + Sync + 'static> {
    block: Block<T>,
}

#[repr(C)]
struct Block<T: Send + Sync + 'static> {
    class: *const c_void,
    flags: c_int,
    reserved: c_int,
    invoke: unsafe extern "C" fn(*const Block<T>, *mut c_void, usize),
    descriptor: *const Descriptor<T>,
    /// A reference of this block's own: `Arc::into_raw`.
    keeper: *const Keeper<T>,
}

#[repr(C)]
struct Descriptor<T: Send + Sync + 'static> {
    reserved: c_ulong,
    size: c_ulong,
    copy: unsafe extern "C" fn(*mut Block<T>, *const Block<T>),
    dispose: unsafe extern "C" fn(*const Block<T>),
}

/// The block has the helpers `copy` and `dispose`.
const HAS_COPY_DISPOSE: c_int = 1 << 25;

struct Keeper<T: Send + Sync + 'static> {
    /// `Arc::into_raw`, or null when it was let go.
    kept: AtomicPtr<T>,
}

impl<T: Send + Sync + 'static> Keeper<T> {
    fn let_go(&self) {
        let kept = self.kept.swap(ptr::null_mut(), Ordering::AcqRel);
        if !kept.is_null() {
            // SAFETY: it came from `Arc::into_raw`, and the swap gives it to one caller alone.
            drop(unsafe { Arc::from_raw(kept.cast_const()) });
        }
    }
}

impl<T: Send + Sync + 'static> Drop for Keeper<T> {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl<T: Send + Sync + 'static> Deallocator<T> {
    const DESCRIPTOR: &'static Descriptor<T> = &Descriptor {
        reserved: 0,
        size: size_of::<Block<T>>() as c_ulong,
        copy: copy::<T>,
        dispose: dispose::<T>,
    };

    /// A block that keeps `kept` alive.
    pub fn new(kept: Arc<T>) -> Deallocator<T> {
        let kept = AtomicPtr::new(Arc::into_raw(kept).cast_mut());
        Deallocator {
            block: Block {
                class: runtime().stack_block,
                flags: HAS_COPY_DISPOSE,
                reserved: 0,
                invoke: invoke::<T>,
                descriptor: Self::DESCRIPTOR,
                keeper: Arc::into_raw(Arc::new(Keeper { kept })),
            },
        }
    }

    /// The block. Whoever wants it for longer than `self` lives copies it, as blocks are.
    pub fn as_block(&self) -> *const c_void {
        ptr::from_ref(&self.block).cast()
    }

    /// Lets go at once, whoever still has a copy: nobody will use the memory.
    pub fn let_go(&self) {
        // SAFETY: the keeper lives as long as `self`, which has a reference to it.
        unsafe { (*self.block.keeper).let_go() };
    }
}

impl<T: Send + Sync + 'static> Drop for Deallocator<T> {
    fn drop(&mut self) {
        // SAFETY: the reference that `new` made for the block on the stack.
        unsafe { Arc::decrement_strong_count(self.block.keeper) };
    }
}

/// The block's function, on whatever thread drops the buffer. It must not panic, and dropping a
/// mapping does not.
///
/// # Safety
///
/// `block` is a living block of this file's, or a copy.
unsafe extern "C" fn invoke<T: Send + Sync + 'static>(
    block: *const Block<T>,
    _bytes: *mut c_void,
    _length: usize,
) {
    // SAFETY: a living block has a reference to its keeper.
    unsafe { (*(*block).keeper).let_go() };
}

/// Called when the bytes of a block were copied to `copied`.
///
/// # Safety
///
/// `from` is a living block of this file's, or a copy; `copied` has the same bytes.
unsafe extern "C" fn copy<T: Send + Sync + 'static>(copied: *mut Block<T>, from: *const Block<T>) {
    // SAFETY: `from` has a reference, so the keeper is alive; the copy gets one of its own. The
    // pointer is set for a runtime that leaves that to the helper.
    unsafe {
        (*copied).keeper = (*from).keeper;
        Arc::increment_strong_count((*from).keeper);
    }
}

/// Called when a copy is about to be freed.
///
/// # Safety
///
/// `block` is a copy that [`copy`] was called for, and will not be used again.
unsafe extern "C" fn dispose<T: Send + Sync + 'static>(block: *const Block<T>) {
    // SAFETY: the reference that `copy` added.
    unsafe { Arc::decrement_strong_count((*block).keeper) };
}
