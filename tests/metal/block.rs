//! What does `_Block_copy` do?
//!
//! As clang's description of the block ABI has it, for a block on the stack: its bytes are copied to
//! memory of their own, the copy gets another class and a count in its flags, and the copy helper
//! is called. When the last copy goes away the dispose helper is called, and the memory freed.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

#[repr(C)]
struct Layout {
    class: *const c_void,
    flags: c_int,
    reserved: c_int,
    invoke: extern "C" fn(*const Layout, *mut c_void, usize),
    descriptor: *const Descriptor,
}

#[repr(C)]
struct Descriptor {
    reserved: usize,
    size: usize,
    copy: extern "C" fn(*mut Layout, *const Layout),
    dispose: extern "C" fn(*const Layout),
}

const HAS_COPY_DISPOSE: c_int = 1 << 25;
const NEEDS_FREE: c_int = 1 << 24;

static STACK_BLOCK: [usize; 32] = [0; 32];
static HEAP_BLOCK: [usize; 32] = [0; 32];

/// Calls of any block so far.
static CALLS: AtomicUsize = AtomicUsize::new(0);

pub fn calls() -> usize {
    CALLS.load(Ordering::SeqCst)
}

pub fn stack_block() -> *const c_void {
    STACK_BLOCK.as_ptr().cast()
}

/// A block's copy.
pub struct Copied(Box<[u64]>);

impl Copied {
    /// Copies a block; or says what is wrong with it.
    ///
    /// # Safety
    ///
    /// `block` is the address of a block, alive during this call.
    pub unsafe fn of(block: *const c_void) -> Result<Copied, String> {
        let from: *const Layout = block.cast();
        // SAFETY: a living block, which begins with this layout.
        let (layout, descriptor) = unsafe { (from.read(), (*from).descriptor.read()) };
        let well_formed = layout.class == stack_block()
            && layout.flags == HAS_COPY_DISPOSE
            && descriptor.reserved == 0
            && descriptor.size >= size_of::<Layout>()
            && descriptor.size % 8 == 0;
        if !well_formed {
            return Err(format!("a block of flags {:#x}, {} bytes", layout.flags, descriptor.size));
        }
        let mut copied = vec![0u64; descriptor.size / 8].into_boxed_slice();
        // SAFETY: so many bytes the block has, by its descriptor.
        unsafe {
            std::ptr::copy_nonoverlapping(block.cast(), copied.as_mut_ptr(), copied.len());
        }
        let to: *mut Layout = copied.as_mut_ptr().cast();
        // SAFETY: the copy, which begins with the layout.
        unsafe {
            (*to).class = HEAP_BLOCK.as_ptr().cast();
            (*to).flags |= NEEDS_FREE | 2;
        }
        (descriptor.copy)(to, from);
        Ok(Copied(copied))
    }

    fn layout(&self) -> *const Layout {
        self.0.as_ptr().cast()
    }

    pub fn call(&self, bytes: usize, length: usize) {
        CALLS.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the copy of a living block.
        let invoke = unsafe { (*self.layout()).invoke };
        invoke(self.layout(), bytes as *mut c_void, length);
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        // SAFETY: as above; the descriptor is as static as the code.
        let dispose = unsafe { (*(*self.layout()).descriptor).dispose };
        dispose(self.layout());
    }
}
