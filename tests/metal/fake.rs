//! What does Metal do, as far as its documents say, where there is no Mac?
//!
//! A runtime of Objective-C with the few classes that `gpu/metal.rs` talks to. It counts references,
//! keeps pools, copies blocks as `_Block_copy` does, calls them when a buffer goes away, and runs
//! the one kernel that there is. It trusts nobody: a message to a dead object, a selector that the
//! object has not, an object that is lent out without a pool, a block of another form are noted as
//! faults, since a panic could not leave a function that C calls.
//!
//! What it cannot know is what Metal does and no document says.

use super::block::Copied;
use crate::barest::Mapping;
use crate::barest::gpu::{Runtime, install};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::{Mutex, MutexGuard};

/// How the fake shall behave.
#[derive(Clone, Copy)]
pub struct Answers {
    pub default_device: bool,
    /// Devices that the list has.
    pub listed: usize,
    pub max_buffer_length: usize,
    pub recommended: u64,
    /// What it does with requests for a buffer over pages, one after the other, and over again.
    pub no_copy: [NoCopy; 4],
    /// Whether buffers of its own memory can be had.
    pub memory: bool,
    /// Whether the system has residency sets, and whether one can be made.
    pub residency: Option<bool>,
    /// An older system, where devices answer to no question but their name.
    pub old: bool,
    pub compiles: bool,
    pub runs: bool,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum NoCopy {
    Made,
    /// Nil, and the block is never copied.
    Nil,
    /// Nil, but the block is called all the same.
    NilAndCalled,
    /// Nil, and a copy of the block stays for ever.
    NilAndKept,
    /// A buffer of no bytes, as old virtual devices make it.
    Short,
    /// The block is called twice when the buffer goes away.
    CalledTwice,
}

pub const USUAL: Answers = Answers {
    default_device: true,
    listed: 1,
    max_buffer_length: 1 << 30,
    recommended: 1 << 33,
    no_copy: [NoCopy::Made; 4],
    memory: true,
    residency: Some(true),
    old: false,
    compiles: true,
    runs: true,
};

/// A message that was sent, with the arguments that its selector has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    pub to: &'static str,
    pub selector: String,
    pub arguments: Vec<usize>,
}

enum Object {
    Class(&'static str),
    Device,
    Array(Vec<usize>),
    Text(CString),
    Error(&'static str),
    Buffer(Buffer),
    Library,
    Function,
    State,
    Queue,
    Commands { work: Vec<Work>, failed: bool },
    Encoder { commands: usize, work: Work },
    Descriptor,
    ResidencySet { members: Vec<usize>, requested: bool, uncommitted: bool },
}

struct Buffer {
    address: usize,
    len: usize,
    /// Memory of its own.
    own: Option<Box<[u64]>>,
    block: Option<Copied>,
    calls: usize,
}

/// What an encoder was told.
#[derive(Default)]
struct Work {
    buffers: BTreeMap<usize, (usize, usize)>,
    bytes: BTreeMap<usize, Vec<u8>>,
    threads: usize,
}

impl Object {
    fn class(&self) -> &'static str {
        match self {
            Object::Class(name) => name,
            Object::Device => "MTLDevice",
            Object::Array(_) => "NSArray",
            Object::Text(_) => "NSString",
            Object::Error(_) => "NSError",
            Object::Buffer(_) => "MTLBuffer",
            Object::Library => "MTLLibrary",
            Object::Function => "MTLFunction",
            Object::State => "MTLComputePipelineState",
            Object::Queue => "MTLCommandQueue",
            Object::Commands { .. } => "MTLCommandBuffer",
            Object::Encoder { .. } => "MTLComputeCommandEncoder",
            Object::Descriptor => "MTLResidencySetDescriptor",
            Object::ResidencySet { .. } => "MTLResidencySet",
        }
    }

    /// The objects that it has a reference to.
    fn held(&self) -> Vec<usize> {
        let bound = |work: &Work| work.buffers.values().map(|(buffer, _)| *buffer).collect();
        match self {
            Object::Array(items) => items.clone(),
            Object::ResidencySet { members, .. } => members.clone(),
            Object::Commands { work, .. } => work.iter().flat_map(bound).collect::<Vec<usize>>(),
            Object::Encoder { commands, work } => {
                let mut held: Vec<usize> = bound(work);
                held.push(*commands);
                held
            }
            _ => Vec::new(),
        }
    }
}

struct State {
    answers: Answers,
    /// With the number of references.
    objects: BTreeMap<usize, (Object, usize)>,
    selectors: BTreeSet<&'static CStr>,
    last: usize,
    no_copies: usize,
    sent: Vec<Sent>,
    faults: Vec<String>,
    /// Copies of blocks that are never freed.
    kept: Vec<Copied>,
}

static STATE: Mutex<State> = Mutex::new(State {
    answers: USUAL,
    objects: BTreeMap::new(),
    selectors: BTreeSet::new(),
    last: 0,
    no_copies: 0,
    sent: Vec::new(),
    faults: Vec::new(),
    kept: Vec::new(),
});

thread_local! {
    static POOLS: RefCell<Vec<Vec<usize>>> = const { RefCell::new(Vec::new()) };
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The fake, for one test at a time.
pub struct Fake(#[allow(dead_code)] MutexGuard<'static, ()>);

impl Fake {
    pub fn start(answers: Answers) -> Fake {
        static ONE: Mutex<()> = Mutex::new(());
        let one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        install(Runtime {
            // SAFETY: never called as what it is declared to be here; as the type of a method, whose
            // arguments it finds where that type puts them.
            objc_msg_send: unsafe {
                std::mem::transmute::<*const (), unsafe extern "C" fn()>(send as *const ())
            },
            sel_register_name: selector,
            objc_get_class: class,
            objc_retain: retain,
            objc_release: release,
            objc_autorelease_pool_push: push,
            objc_autorelease_pool_pop: pop,
            create_system_default_device: default_device,
            copy_all_devices: Some(copy_all_devices),
            stack_block: super::block::stack_block(),
        });
        let mut state = state();
        state.answers = answers;
        state.objects.clear();
        state.faults.clear();
        state.sent.clear();
        state.no_copies = 0;
        Fake(one)
    }

    /// What was sent so far, by selector.
    pub fn sent(&self, selector: &str) -> Vec<Sent> {
        state().sent.iter().filter(|sent| sent.selector == selector).cloned().collect()
    }

    /// How many objects of a class live.
    pub fn living(&self, class: &str) -> usize {
        state().objects.values().filter(|(object, _)| object.class() == class).count()
    }

    /// The first byte of a buffer.
    pub fn contents(&self, buffer: *mut c_void) -> *const u8 {
        match state().object(buffer as usize) {
            Some(Object::Buffer(buffer)) => buffer.address as *const u8,
            _ => std::ptr::null(),
        }
    }

    /// The members of the one residency set, and whether it was requested.
    pub fn resident(&self) -> Option<(usize, bool)> {
        state().objects.values().find_map(|(object, _)| match object {
            Object::ResidencySet { members, requested, uncommitted: false } => {
                Some((members.len(), *requested))
            }
            _ => None,
        })
    }

    /// Takes a reference, as a command that is still running would.
    pub fn retain(&self, object: *mut c_void) {
        retain(object);
    }

    pub fn release(&self, object: *mut c_void) {
        let pool = push();
        release(object);
        pop(pool);
    }

    /// Nothing may be left, and nothing may have gone wrong.
    pub fn end(self) {
        let state = state();
        let faults = state.faults.clone();
        let is_class = |object: &Object| matches!(object, Object::Class(_));
        let left: Vec<&str> = state
            .objects
            .values()
            .filter(|(object, _)| !is_class(object))
            .map(|(object, _)| object.class())
            .collect();
        assert!(faults.is_empty(), "{faults:#?}");
        assert!(left.is_empty(), "these live on: {left:?}");
        POOLS.with_borrow(|pools| assert!(pools.is_empty(), "a pool did not end"));
    }
}

impl State {
    fn fault(&mut self, fault: String) -> usize {
        self.faults.push(fault);
        0
    }

    /// A new object with one reference.
    fn make(&mut self, object: Object) -> usize {
        // No address of anything, so that whoever looks into it gets a fault.
        self.last += 16;
        self.objects.insert(self.last, (object, 1));
        self.last
    }

    /// A new object, lent to the pool.
    fn lend(&mut self, object: Object) -> usize {
        let class = object.class();
        let id = self.make(object);
        let lent = POOLS.with_borrow_mut(|pools| pools.last_mut().map(|pool| pool.push(id)));
        if lent.is_none() {
            self.fault(format!("a {class} is lent out without a pool"));
        }
        id
    }

    fn retain(&mut self, id: usize) {
        match self.objects.get_mut(&id) {
            Some((_, references)) => *references += 1,
            None => {
                self.fault(format!("a reference to {id:#x}, which is no object"));
            }
        }
    }

    fn release(&mut self, id: usize) {
        let mut left = vec![id];
        while let Some(id) = left.pop() {
            let Some((object, references)) = self.objects.get_mut(&id) else {
                self.fault(format!("{id:#x} is released, and is no object"));
                continue;
            };
            if matches!(object, Object::Class(_)) {
                continue;
            }
            *references -= 1;
            if *references > 0 {
                continue;
            }
            let Some((object, _)) = self.objects.remove(&id) else { continue };
            left.extend(object.held());
            if matches!(object, Object::Buffer(_)) {
                // As the drivers of Apple's GPUs do.
                self.lend(Object::Text(c"what a buffer left".to_owned()));
            }
            match object {
                Object::Buffer(Buffer { address, len, block: Some(block), calls, .. }) => {
                    (0..calls).for_each(|_| block.call(address, len));
                }
                Object::ResidencySet { members, requested, uncommitted }
                    if requested || uncommitted || !members.is_empty() =>
                {
                    self.fault("a residency set goes away with its members".to_owned());
                }
                _ => {}
            }
        }
    }

    fn text(&self, id: usize) -> Option<&CStr> {
        match self.objects.get(&id) {
            Some((Object::Text(text), _)) => Some(text),
            _ => None,
        }
    }

    fn object(&mut self, id: usize) -> Option<&mut Object> {
        self.objects.get_mut(&id).map(|(object, _)| object)
    }

    /// Sends a message. `sizes` are the six numbers of two `MTLSize`s, for the one that has them.
    fn send(&mut self, to: usize, selector: &str, words: [usize; 4], sizes: [usize; 6]) -> usize {
        if to == 0 {
            return 0;
        }
        let Some(class) = self.object(to).map(|object| object.class()) else {
            return self.fault(format!("{selector} is sent to {to:#x}, which is no object"));
        };
        let colons = selector.matches(':').count();
        let arguments = words[..colons].to_vec();
        self.sent.push(Sent { to: class, selector: selector.to_owned(), arguments });
        match class {
            "MTLDevice" => self.send_to_device(selector, words),
            "MTLResidencySet" => self.send_to_residency_set(to, selector, words[0]),
            "MTLCommandBuffer" | "MTLComputeCommandEncoder" => {
                self.send_to_commands(to, selector, words, sizes)
            }
            _ => self.send_to_others(to, selector, words),
        }
        .unwrap_or_else(|| self.fault(format!("a {class} has no {selector}")))
    }

    fn send_to_device(&mut self, selector: &str, [a, b, c, d]: [usize; 4]) -> Option<usize> {
        let Answers { max_buffer_length, recommended, old, residency, .. } = self.answers;
        if old
            && ["maxBufferLength", "currentAllocatedSize", "hasUnifiedMemory"].contains(&selector)
        {
            return None;
        }
        Some(match selector {
            "respondsToSelector:" => usize::from(!old),
            "hasUnifiedMemory" => 1,
            "name" => self.lend(Object::Text(c"a fake device".to_owned())),
            "maxBufferLength" => max_buffer_length,
            "recommendedMaxWorkingSetSize" => recommended as usize,
            "currentAllocatedSize" => {
                let lens = self.objects.values().map(|(object, _)| match object {
                    Object::Buffer(buffer) => buffer.len,
                    _ => 0,
                });
                lens.sum()
            }
            "newBufferWithBytesNoCopy:length:options:deallocator:" => self.no_copy(a, b, c, d),
            "newBufferWithLength:options:" => {
                if a == 0 || a > max_buffer_length || b != 0 {
                    return Some(self.fault(format!("a buffer of {a} bytes, options {b:#x}")));
                }
                if !self.answers.memory {
                    return Some(0);
                }
                let own = vec![0u64; a.div_ceil(8)].into_boxed_slice();
                let address = own.as_ptr() as usize;
                let own = Some(own);
                self.make(Object::Buffer(Buffer { address, len: a, own, block: None, calls: 0 }))
            }
            "newLibraryWithSource:options:error:" => {
                let is_it = |text: &CStr| text.to_string_lossy().contains("kernel void sum_bf16(");
                if !self.text(a).is_some_and(is_it) || b != 0 {
                    return Some(self.fault("a source without the kernel".to_owned()));
                }
                match self.answers.compiles {
                    true => self.make(Object::Library),
                    false => self.fail(c, "line 1: no such word"),
                }
            }
            "newComputePipelineStateWithFunction:error:" => match self.object(a) {
                Some(Object::Function) => self.make(Object::State),
                _ => self.fault("a state of no function".to_owned()),
            },
            "newCommandQueue" => self.make(Object::Queue),
            "newResidencySetWithDescriptor:error:" => match self.object(a) {
                Some(Object::Descriptor) if residency == Some(true) => {
                    self.make(Object::ResidencySet {
                        members: Vec::new(),
                        requested: false,
                        uncommitted: false,
                    })
                }
                Some(Object::Descriptor) => self.fail(b, "no room for a set"),
                _ => self.fault("a residency set of no descriptor".to_owned()),
            },
            _ => return None,
        })
    }

    /// Lends an error to whoever asked for it, and is nil.
    fn fail(&mut self, error: usize, message: &'static str) -> usize {
        let id = self.lend(Object::Error(message));
        // SAFETY: the argument is a pointer to an `id` of the caller's.
        unsafe { (error as *mut usize).write(id) };
        0
    }

    fn no_copy(&mut self, address: usize, len: usize, options: usize, block: usize) -> usize {
        let page = Mapping::page_size();
        let whole_pages = address % page == 0 && len % page == 0 && len > 0;
        if !whole_pages || len > self.answers.max_buffer_length || options != 0 {
            return self.fault(format!("{len} bytes at {address:#x}, options {options:#x}"));
        }
        let answer = self.answers.no_copy[self.no_copies % 4];
        self.no_copies += 1;
        if answer == NoCopy::Nil {
            return 0;
        }
        // SAFETY: the argument is a block, alive during the call.
        let copied = match unsafe { Copied::of(block as *const c_void) } {
            Ok(copied) => copied,
            Err(fault) => return self.fault(fault),
        };
        let (len, calls) = match answer {
            NoCopy::NilAndCalled => {
                copied.call(address, len);
                return 0;
            }
            NoCopy::NilAndKept => {
                self.kept.push(copied);
                return 0;
            }
            NoCopy::Short => (0, 1),
            NoCopy::CalledTwice => (len, 2),
            _ => (len, 1),
        };
        let block = Some(copied);
        self.make(Object::Buffer(Buffer { address, len, own: None, block, calls }))
    }

    fn send_to_residency_set(&mut self, to: usize, selector: &str, a: usize) -> Option<usize> {
        if selector == "addAllocation:" {
            self.retain(a);
        }
        let mut gone = Vec::new();
        let Some(Object::ResidencySet { members, requested, uncommitted }) = self.object(to) else {
            return None;
        };
        match selector {
            "addAllocation:" => {
                members.push(a);
                *uncommitted = true;
            }
            "removeAllAllocations" => {
                gone.append(members);
                *uncommitted = true;
            }
            "commit" => *uncommitted = false,
            "requestResidency" => *requested = true,
            "endResidency" => *requested = false,
            _ => return None,
        }
        gone.into_iter().for_each(|member| self.release(member));
        Some(RUBBISH)
    }

    fn send_to_commands(
        &mut self,
        to: usize,
        selector: &str,
        [a, b, c, _]: [usize; 4],
        sizes: [usize; 6],
    ) -> Option<usize> {
        if selector == "computeCommandEncoder" {
            self.retain(to);
            return Some(self.lend(Object::Encoder { commands: to, work: Work::default() }));
        }
        if selector == "setBuffer:offset:atIndex:" {
            self.retain(a);
        }
        let runs = self.answers.runs;
        match (self.object(to)?, selector) {
            (Object::Encoder { .. }, "setComputePipelineState:") => match self.object(a) {
                Some(Object::State) => {}
                _ => return Some(self.fault("no state is set".to_owned())),
            },
            (Object::Encoder { work, .. }, "setBuffer:offset:atIndex:") => {
                work.buffers.insert(c, (a, b));
            }
            (Object::Encoder { work, .. }, "setBytes:length:atIndex:") => {
                // SAFETY: the arguments are bytes and their number.
                let bytes = unsafe { std::slice::from_raw_parts(a as *const u8, b) };
                work.bytes.insert(c, bytes.to_vec());
            }
            (Object::Encoder { work, .. }, "dispatchThreadgroups:threadsPerThreadgroup:") => {
                let [groups, 1, 1, threads, 1, 1] = sizes else {
                    return Some(self.fault(format!("sizes {sizes:?}")));
                };
                work.threads = groups * threads;
            }
            (Object::Encoder { commands, work }, "endEncoding") => {
                let (commands, work) = (*commands, std::mem::take(work));
                if let Some(Object::Commands { work: all, .. }) = self.object(commands) {
                    all.push(work);
                }
            }
            (Object::Commands { work, failed }, "commit") => {
                *failed = !runs;
                let held: Vec<usize> =
                    work.iter().flat_map(|w| w.buffers.values().map(|(id, _)| *id)).collect();
                let work = std::mem::take(work);
                if runs {
                    work.iter().for_each(|work| self.run(work));
                }
                held.into_iter().for_each(|buffer| self.release(buffer));
            }
            (Object::Commands { .. }, "waitUntilCompleted") => {}
            (Object::Commands { failed: false, .. }, "error") => return Some(0),
            (Object::Commands { .. }, "error") => {
                return Some(self.lend(Object::Error("the device was taken away")));
            }
            _ => return None,
        }
        Some(RUBBISH)
    }

    fn send_to_others(&mut self, to: usize, selector: &str, words: [usize; 4]) -> Option<usize> {
        let text = |text: &str| Object::Text(CString::new(text).unwrap_or_default());
        Some(match (self.object(to)?, selector) {
            (Object::Class("NSString"), "stringWithUTF8String:") => {
                // SAFETY: the argument is a string with its end.
                let text = unsafe { CStr::from_ptr(words[0] as *const c_char) }.to_owned();
                self.lend(Object::Text(text))
            }
            (Object::Class("MTLResidencySetDescriptor"), "new") => self.make(Object::Descriptor),
            (Object::Text(text), "UTF8String") => text.as_ptr() as usize,
            (Object::Error(message), "localizedDescription") => {
                let message = text(message);
                self.lend(message)
            }
            (Object::Array(items), "count") => items.len(),
            (Object::Array(items), "objectAtIndex:") => items[words[0]],
            (Object::Buffer(buffer), "length") => buffer.len,
            (Object::Buffer(buffer), "contents") => buffer.address,
            (Object::Library, "newFunctionWithName:") => match self.text(words[0]) {
                Some(name) if name == c"sum_bf16" => self.make(Object::Function),
                _ => 0,
            },
            (Object::State, "maxTotalThreadsPerThreadgroup") => 96,
            (Object::Queue, "commandBuffer") => {
                self.lend(Object::Commands { work: Vec::new(), failed: false })
            }
            _ => return None,
        })
    }

    /// The kernel of `gpu/sum.rs`, in the words of a processor.
    fn run(&mut self, work: &Work) {
        let mut range = |index: usize, alignment: usize| {
            let (id, offset) = work.buffers.get(&index).copied().unwrap_or_default();
            match self.object(id) {
                Some(Object::Buffer(buffer)) if offset % alignment == 0 && offset < buffer.len => {
                    Some((buffer.address + offset, buffer.len - offset, buffer.own.is_some()))
                }
                _ => None,
            }
        };
        let count = work.bytes.get(&3).and_then(|bytes| bytes[..].try_into().ok());
        let (Some(elements), Some(sums), Some(checks), Some(count)) =
            (range(0, 2), range(1, 4), range(2, 4), count.map(usize::from_ne_bytes))
        else {
            self.fault("arguments that are no buffers".to_owned());
            return;
        };
        let room = work.threads * 4;
        if elements.1 < count * 2 || sums.1 < room || checks.1 < room || !sums.2 || !checks.2 {
            self.fault("buffers that are too short".to_owned());
            return;
        }
        for thread in 0..work.threads {
            let (mut sum, mut check) = (0f32, 0u32);
            for at in (thread..count).step_by(work.threads) {
                // SAFETY: within the buffer's bytes, which its block keeps mapped.
                let bits = u32::from(unsafe { (elements.0 as *const u16).add(at).read() }.to_le());
                sum += f32::from_bits(bits << 16);
                check = check.wrapping_add((bits + 1).wrapping_mul((2 * at + 1) as u32));
            }
            // SAFETY: within the memory of two buffers of the fake's own.
            unsafe {
                (sums.0 as *mut f32).add(thread).write(sum);
                (checks.0 as *mut u32).add(thread).write(check);
            }
        }
    }
}

/// What a method without a result leaves behind.
const RUBBISH: usize = 0xdead_beef;

// --- The functions --------------------------------------------------------------------------

/// The functions' arguments, in the registers that C passes them in: every method that is sent has
/// four words at most behind receiver and selector, but for one that has two `MTLSize`s. Those
/// go over the stack on x86-64, and as two addresses on arm64; what is read of the stack where
/// there is none is the caller's own, and not looked at.
#[allow(clippy::too_many_arguments)]
extern "C" fn send(
    to: usize,
    selector: *const c_char,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    s0: usize,
    s1: usize,
    s2: usize,
    s3: usize,
    s4: usize,
    s5: usize,
) -> usize {
    // SAFETY: selectors are the strings that `selector` keeps.
    let selector = unsafe { CStr::from_ptr(selector) }.to_str().unwrap_or("?");
    let has_sizes = selector == "dispatchThreadgroups:threadsPerThreadgroup:";
    let sizes = match has_sizes && cfg!(not(target_arch = "x86_64")) {
        // SAFETY: two structs of three words, by their addresses.
        true => unsafe {
            let ([w, h, d], [x, y, z]) = (*(a as *const [usize; 3]), *(b as *const [usize; 3]));
            [w, h, d, x, y, z]
        },
        false => [s0, s1, s2, s3, s4, s5],
    };
    state().send(to, selector, [a, b, c, d], sizes)
}

extern "C" fn selector(name: *const c_char) -> *const c_void {
    // SAFETY: a string with its end.
    let name = unsafe { CStr::from_ptr(name) };
    let mut state = state();
    if let Some(known) = state.selectors.get(name) {
        return known.as_ptr().cast();
    }
    let name: &'static CStr = Box::leak(name.to_owned().into_boxed_c_str());
    state.selectors.insert(name);
    name.as_ptr().cast()
}

extern "C" fn class(name: *const c_char) -> *mut c_void {
    // SAFETY: a string with its end.
    let name = unsafe { CStr::from_ptr(name) };
    let mut state = state();
    let name = match name.to_str() {
        Ok("NSString") => "NSString",
        Ok("MTLResidencySetDescriptor") if state.answers.residency.is_some() => {
            "MTLResidencySetDescriptor"
        }
        _ => return std::ptr::null_mut(),
    };
    state.make(Object::Class(name)) as *mut c_void
}

extern "C" fn retain(object: *mut c_void) -> *mut c_void {
    state().retain(object as usize);
    object
}

extern "C" fn release(object: *mut c_void) {
    state().release(object as usize);
}

extern "C" fn push() -> *mut c_void {
    POOLS.with_borrow_mut(|pools| {
        pools.push(Vec::new());
        pools.len() as *mut c_void
    })
}

extern "C" fn pop(token: *mut c_void) {
    let depth = POOLS.with_borrow(Vec::len);
    let mut state = state();
    if depth != token as usize {
        state.fault("a pool ends before one that began later".to_owned());
    }
    // What is lent out meanwhile goes with the rest.
    while let Some(object) = POOLS.with_borrow_mut(|pools| pools.last_mut()?.pop()) {
        state.release(object);
    }
    POOLS.with_borrow_mut(Vec::pop);
}

extern "C" fn default_device() -> *mut c_void {
    let mut state = state();
    match state.answers.default_device {
        true => state.make(Object::Device) as *mut c_void,
        false => std::ptr::null_mut(),
    }
}

extern "C" fn copy_all_devices() -> *mut c_void {
    let mut state = state();
    let devices = (0..state.answers.listed).map(|_| state.make(Object::Device)).collect();
    state.make(Object::Array(devices)) as *mut c_void
}
