//! How is Objective-C called without a crate in between?
//!
//! A method call is a call of `objc_msgSend` with the receiver, the selector and the arguments. That
//! function has no type of its own: it jumps to the method, with every register as it found it, so
//! it must be called with exactly the method's type. Apple's arm64 puts variadic arguments on the
//! stack, where no method looks for them: a variadic declaration compiles, links, and passes
//! rubbish.
//!
//! ```text
//!   runtime.rs    the functions, linked on Apple's systems, and handed in by a test elsewhere
//!   messages.rs   one function of the exact type for each message that is sent
//!   device.rs     a device, its buffers, and what is kept resident
//!   kernel.rs     a compute kernel, from its text to its end
//!   block.rs      a block that holds something and lets go of it once
//! ```
//!
//! This folder and `gpu/` can be left out of a copy together: a `mod` line each.

// 64 bits, since blocks and `NSUInteger` are described for these; tests of other systems bring a
// runtime of their own.
#![cfg(all(
    target_pointer_width = "64",
    any(target_os = "macos", target_os = "ios", all(test, unix)),
))]

mod block;
mod device;
mod kernel;
pub mod messages;
mod runtime;

pub use block::Deallocator;
pub use device::{Buffer, Device, ResidencySet};
pub use kernel::Kernel;
pub use runtime::Runtime;
#[cfg(not(target_vendor = "apple"))]
pub use runtime::install;

use runtime::runtime;
use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

/// `id`: an object, or nil.
pub type Id = *mut c_void;

/// `BOOL`: a `signed char` on Intel and a `bool` on arm64; 0 and 1 on both.
pub type Bool = i8;

/// `SEL`, looked up once.
pub struct Selector {
    name: &'static CStr,
    known: AtomicPtr<c_void>,
}

impl Selector {
    pub const fn new(name: &'static CStr) -> Selector {
        Selector { name, known: AtomicPtr::new(std::ptr::null_mut()) }
    }

    fn get(&self) -> *const c_void {
        let known = self.known.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: a string with its end; the runtime copies it. Twice the same answer, if two
        // threads come at once.
        let found = unsafe { (runtime().sel_register_name)(self.name.as_ptr()) };
        self.known.store(found.cast_mut(), Ordering::Relaxed);
        found
    }
}

/// A reference of ours to an object, given back when dropped.
pub struct Retained(NonNull<c_void>);

impl Retained {
    /// Takes over a reference that is ours already: what methods give whose name begins with `new`,
    /// `alloc` or `copy`, and functions with `Create` or `Copy` in theirs. `None` for nil.
    ///
    /// # Safety
    ///
    /// `object` is nil or an object with a reference that nobody else will give back.
    pub unsafe fn owned(object: Id) -> Option<Retained> {
        NonNull::new(object).map(Retained)
    }

    /// Adds a reference to what others keep for now, such as the result of any other method.
    ///
    /// # Safety
    ///
    /// `object` is nil or an object that is alive during this call.
    pub unsafe fn shared(object: Id) -> Option<Retained> {
        let object = NonNull::new(object)?;
        // SAFETY: alive, by this function's contract.
        unsafe { (runtime().objc_retain)(object.as_ptr()) };
        Some(Retained(object))
    }

    pub fn id(&self) -> Id {
        self.0.as_ptr()
    }
}

impl Drop for Retained {
    /// Within a pool: what goes away may lend out what it was made of, on any thread.
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and given back once.
        Pool::around(|| unsafe { (runtime().objc_release)(self.0.as_ptr()) });
    }
}

// SAFETY: a count of references may be changed from any thread. What else may be done with an
// object from two threads is a question for whoever sends it messages.
unsafe impl Send for Retained {}
// SAFETY: through `&Retained` nothing is changed here.
unsafe impl Sync for Retained {}

/// An autorelease pool: what methods lend out lives until it ends. It belongs to its thread, and
/// pools end in the reverse of the order in which they began.
pub struct Pool {
    token: *mut c_void,
    not_send: PhantomData<*mut c_void>,
}

impl Pool {
    /// Calls `work` within a pool. Nothing that is lent out may leave it.
    pub fn around<T>(work: impl FnOnce() -> T) -> T {
        // SAFETY: takes nothing; the token goes back once, on this thread, in `drop`.
        let token = unsafe { (runtime().objc_autorelease_pool_push)() };
        let _pool = Pool { token, not_send: PhantomData };
        work()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: the token of the push in `around`; later pools of this thread have ended, for
        // each lives within one call.
        unsafe { (runtime().objc_autorelease_pool_pop)(self.token) };
    }
}

/// The class of that name, which is never freed; nil on a system that has none.
pub fn class(name: &CStr) -> Id {
    // SAFETY: a string with its end.
    unsafe { (runtime().objc_get_class)(name.as_ptr()) }
}

/// An `NSString`; `None` if there is no memory. Call it within a pool.
pub fn string(text: &CStr) -> Option<Retained> {
    // SAFETY: a class method that copies a string with its end, and what it lends out is alive as
    // long as the caller's pool.
    unsafe {
        Retained::shared(messages::string_with_utf8_string(class(c"NSString"), text.as_ptr()))
    }
}

/// What an `NSString` says; empty for nil. Call it within a pool.
///
/// # Safety
///
/// `string` is nil or an `NSString` that is alive.
pub unsafe fn text(string: Id) -> String {
    // SAFETY: nil answers null; else bytes with their end that live as long as the pool, and are
    // copied here.
    let bytes: *const c_char = unsafe { messages::utf8_string(string) };
    match bytes.is_null() {
        true => String::new(),
        // SAFETY: as above.
        false => unsafe { CStr::from_ptr(bytes) }.to_string_lossy().into_owned(),
    }
}
