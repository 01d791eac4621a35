"""Runs the crate's arm64 code for macOS in an emulator, with this file as Apple's libraries.

    run.py LIBRARY      libmacho.dylib, as tests/macho builds it for aarch64-apple-darwin

What it shows: the names of functions and selectors, every argument in the register where Apple's
convention has it, structs by value, references that come out even, blocks that are copied, called and
disposed of, pages that are unmapped when the last user is gone and not before. What it cannot
show: that Metal takes these buffers, and what a GPU does with them.

Needs unicorn (pip install unicorn). It takes libraries without chained fixups, which is what a
deployment target of macOS 11 gives.
"""

import struct
import sys
from inspect import isgenerator

from unicorn import UC_ARCH_ARM64, UC_HOOK_CODE, UC_MODE_ARM, Uc, UcError
from unicorn.arm64_const import UC_ARM64_REG_LR, UC_ARM64_REG_PC, UC_ARM64_REG_SP, UC_ARM64_REG_X0
from unicorn.arm64_const import UC_CPU_ARM64_MAX

PAGE = 16384
IMAGE, HEAP, STACK, MAPS, THREAD, STUBS = (place << 32 for place in (1, 2, 3, 4, 5, 6))
HEAP_SIZE, STACK_SIZE, STUBS_SIZE = 64 << 20, 1 << 20, 1 << 16
# The last two stubs: where a call from here returns to, and one from within a handler.
BACK, ON = STUBS + STUBS_SIZE - 16, STUBS + STUBS_SIZE - 8
RUBBISH = 0xDEADBEEF
MASK = (1 << 64) - 1


class Machine:
    """The processor, its memory, and the library in it."""

    def __init__(self, path):
        self.cpu = Uc(UC_ARCH_ARM64, UC_MODE_ARM)
        # Apple's processors know instructions that the default one does not.
        self.cpu.ctl_set_cpu_model(UC_CPU_ARM64_MAX)
        self.imports, self.exports, self.waiting = {}, {}, []
        self.fault = None
        self.functions = {}
        for start, size in (HEAP, HEAP_SIZE), (STACK, STACK_SIZE), (STUBS, STUBS_SIZE):
            self.cpu.mem_map(start, size)
        self.cpu.hook_add(UC_HOOK_CODE, self.at_stub, begin=STUBS, end=STUBS + STUBS_SIZE)
        with open(path, "rb") as file:
            self.load(file.read())

    def read(self, address, size):
        return bytes(self.cpu.mem_read(address, size))

    def write(self, address, data):
        self.cpu.mem_write(address, bytes(data))

    def word(self, address):
        return struct.unpack("<Q", self.read(address, 8))[0]

    def put_word(self, address, value):
        self.write(address, struct.pack("<Q", value & MASK))

    def text(self, address):
        end = address
        while self.read(end, 1) != b"\0":
            end += 1
        return self.read(address, end - address).decode()

    def register(self, number):
        return self.cpu.reg_read(UC_ARM64_REG_X0 + number)

    # --- The file: segments, addresses that move with it, names ---

    def load(self, data):
        magic, processor, _, _, commands, _, _, _ = struct.unpack_from("<8I", data)
        assert (magic, processor) == (0xFEEDFACF, 0x0100000C), "no arm64 Mach-O"
        segments, symbols, moves, at = [], None, None, 32
        template = []
        for _ in range(commands):
            command, size = struct.unpack_from("<2I", data, at)
            if command == 0x19:
                start, length, offset, stored = struct.unpack_from("<4Q", data, at + 24)
                segments.append(start)
                if length:
                    self.cpu.mem_map(IMAGE + start, -(-length // PAGE) * PAGE)
                    self.write(IMAGE + start, data[offset : offset + stored])
                for number in range(struct.unpack_from("<I", data, at + 64)[0]):
                    section = at + 72 + 80 * number
                    place, length, offset = struct.unpack_from("<2QI", data, section + 32)
                    kind = struct.unpack_from("<I", data, section + 64)[0] & 0xFF
                    if kind in (0x11, 0x12):  # thread-local, with values or with zeros
                        held = data[offset : offset + length] if kind == 0x11 else bytes(length)
                        template.append((place, held))
            elif command == 0x02:
                symbols = struct.unpack_from("<4I", data, at + 8)
            elif command in (0x22, 0x80000022):
                moves = struct.unpack_from("<8I", data, at + 8)
            assert command != 0x80000034, "chained fixups: build for an older macOS"
            at += size
        offset, count, strings, _ = symbols
        for number in range(count):
            name, kind, _, _, value = struct.unpack_from("<IBBHQ", data, offset + 16 * number)
            if kind & 0x0E == 0x0E:
                end = data.index(b"\0", strings + name)
                self.exports[data[strings + name : end].decode()] = IMAGE + value
        self.thread = bytearray()
        for place, held in sorted(template):
            self.thread = self.thread.ljust(place - min(template)[0], b"\0") + held
        self.cpu.mem_map(THREAD, -(-max(len(self.thread), 1) // PAGE) * PAGE)
        self.write(THREAD, self.thread)
        rebases = data[moves[0] : moves[0] + moves[1]]
        self.rebase(rebases, segments)
        for offset, size in (moves[2:4], moves[4:6], moves[6:8]):
            self.bind(data[offset : offset + size], segments)

    def rebase(self, code, segments):
        code, place = Opcodes(code), 0
        number = code.number
        for operation, small in code:
            times, skip = 0, 0
            if operation == 0x20:
                place = IMAGE + segments[small] + number()
            elif operation == 0x30:
                place += number()
            elif operation == 0x40:
                place += 8 * small
            elif operation == 0x50:
                times = small
            elif operation == 0x60:
                times = number()
            elif operation == 0x70:
                times, skip = 1, number()
            elif operation == 0x80:
                times, skip = number(), number()
            for _ in range(times):
                self.put_word(place, self.word(place) + IMAGE)
                place += 8 + skip

    def bind(self, code, segments):
        code, place, name, addend = Opcodes(code), 0, "", 0
        number = code.number
        for operation, small in code:
            times, skip = 0, 0
            if operation == 0x20:
                number()
            elif operation == 0x40:
                name = code.name()
            elif operation == 0x60:
                addend = number()
            elif operation == 0x70:
                place = IMAGE + segments[small] + number()
            elif operation == 0x80:
                place += number()
            elif operation == 0x90:
                times = 1
            elif operation == 0xA0:
                times, skip = 1, number()
            elif operation == 0xB0:
                times, skip = 1, 8 * small
            elif operation == 0xC0:
                times, skip = number(), number()
            for _ in range(times):
                self.put_word(place, self.stub(name) + addend)
                place = (place + 8 + skip) & MASK

    def stub(self, name):
        """Where a foreign name leads; weak ones that the library has itself lead there."""
        if name in self.exports and name not in self.imports:
            return self.exports[name]
        return self.imports.setdefault(name, STUBS + 16 * len(self.imports))

    # --- Calls, in both directions ---

    def at_stub(self, cpu, address, _size, _data):
        if address == BACK:
            cpu.emu_stop()
        elif address == ON:
            self.go_on(self.register(0))
        else:
            back = cpu.reg_read(UC_ARM64_REG_LR)
            name = next(name for name, stub in self.imports.items() if stub == address)
            try:
                if name not in self.functions:
                    raise Fault(f"{name} is not among the functions of this file")
                answer = self.functions[name](*(self.register(number) for number in range(8)))
                if isgenerator(answer):
                    self.waiting.append((answer, back))
                    self.go_on(None)
                else:
                    self.give(answer, back)
            except Fault as fault:
                self.stop(fault)

    def give(self, answer, back):
        self.cpu.reg_write(UC_ARM64_REG_X0, (answer or 0) & MASK)
        self.cpu.reg_write(UC_ARM64_REG_PC, back)

    def go_on(self, answer):
        """A handler that calls functions of the library is a generator: it yields each call."""
        handler, back = self.waiting[-1]
        try:
            function, *arguments = handler.send(answer)
            self.enter(function, arguments, ON)
        except StopIteration as end:
            self.waiting.pop()
            self.give(end.value, back)
        except Fault as fault:
            self.stop(fault)

    def enter(self, function, arguments, back):
        for number in range(8):
            value = arguments[number] if number < len(arguments) else RUBBISH
            self.cpu.reg_write(UC_ARM64_REG_X0 + number, value)
        self.cpu.reg_write(UC_ARM64_REG_LR, back)
        self.cpu.reg_write(UC_ARM64_REG_PC, function)

    def stop(self, fault):
        self.fault = self.fault or str(fault)
        self.cpu.emu_stop()

    def call(self, function, *arguments):
        """Calls a function of the library, by name or address."""
        self.fault, self.waiting = None, []
        self.cpu.reg_write(UC_ARM64_REG_SP, STACK + STACK_SIZE - 4096)
        address = self.exports[function] if isinstance(function, str) else function
        self.enter(address, arguments, BACK)
        try:
            self.cpu.emu_start(address, BACK, count=100_000_000)
        except UcError as error:
            self.stop(f"{error} at {self.cpu.reg_read(UC_ARM64_REG_PC):#x}")
        if self.fault:
            raise Fault(self.fault)
        return self.register(0)


class Opcodes:
    """The little programs in which a Mach-O file says which words of it are addresses."""

    def __init__(self, code):
        self.code, self.at = code, 0

    def __iter__(self):
        while self.at < len(self.code):
            byte = self.code[self.at]
            self.at += 1
            yield byte & 0xF0, byte & 0x0F

    def number(self):
        value, shift = 0, 0
        while True:
            byte = self.code[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def name(self):
        end = self.code.index(b"\0", self.at)
        name, self.at = self.code[self.at : end].decode(), end + 1
        return name


class Fault(Exception):
    """What should not have happened."""


class System:
    """libSystem, as far as the crate and std ask for it here."""

    def __init__(self, machine):
        self.machine, self.free_from, self.sizes = machine, HEAP + 64, {}
        self.maps, self.map_from = {}, MAPS
        m = machine
        m.functions.update(
            _malloc=lambda size, *_: self.allocate(size),
            _calloc=lambda count, size, *_: self.allocate(count * size),
            _realloc=self.reallocate,
            _free=self.free,
            _posix_memalign=self.aligned,
            _memcpy=self.copy,
            _memmove=self.copy,
            _memset=self.fill,
            _bzero=lambda to, size, *_: self.fill(to, 0, size),
            _memcmp=self.compare,
            _bcmp=self.compare,
            _strlen=lambda text, *_: len(m.text(text)),
            _sysconf=lambda name, *_: {29: PAGE}[name & 0xFFFFFFFF],
            _mmap=self.map,
            _munmap=self.unmap,
            _mprotect=lambda *_: 0,
            _madvise=lambda *_: 0,
            __tlv_bootstrap=lambda place, *_: THREAD + m.word(place + 16),
            __tlv_atexit=lambda *_: 0,
            _CCRandomGenerateBytes=self.random,
            _getentropy=self.random,
            _pthread_self=lambda *_: THREAD,
        )

    def allocate(self, size, alignment=16):
        address = -(-self.free_from // alignment) * alignment
        self.free_from = address + max(size, 1)
        if self.free_from > HEAP + HEAP_SIZE:
            raise Fault("the heap is full")
        self.sizes[address] = size
        self.machine.write(address, bytes(size))
        return address

    def free(self, address, *_):
        if not address:
            return
        if address not in self.sizes:
            raise Fault(f"{address:#x} is freed, and was not allocated")
        # Whoever looks into it later finds an address that leads nowhere.
        self.machine.write(address, b"\xfe" * self.sizes.pop(address))

    def reallocate(self, address, size, *_):
        to = self.allocate(size)
        if address:
            self.machine.write(to, self.machine.read(address, min(size, self.sizes[address])))
            self.free(address)
        return to

    def aligned(self, result, alignment, size, *_):
        self.machine.put_word(result, self.allocate(size, alignment))
        return 0

    def copy(self, to, source, size, *_):
        if size:
            self.machine.write(to, self.machine.read(source, size))
        return to

    def fill(self, to, byte, size, *_):
        self.machine.write(to, bytes([byte & 0xFF]) * size)
        return to

    def compare(self, one, other, size, *_):
        one, other = self.machine.read(one, size), self.machine.read(other, size)
        return (one > other) - (one < other)

    def random(self, to, size, *_):
        self.machine.write(to, b"\x2a" * size)
        return 0

    def map(self, _address, length, _protection, flags, *_):
        if flags != 0x1002:
            raise Fault(f"mmap with flags {flags:#x}: only private memory is here")
        size = -(-length // PAGE) * PAGE
        address = self.map_from
        self.map_from += size + PAGE
        self.machine.cpu.mem_map(address, size)
        self.maps[address] = size
        return address

    def unmap(self, address, length, *_):
        size = self.maps.pop(address, None)
        if size is None or size != -(-length // PAGE) * PAGE:
            raise Fault(f"munmap of {length} bytes at {address:#x}")
        # From here on every access is a fault of the emulator's.
        self.machine.cpu.mem_unmap(address, size)
        return 0


class Thing:
    """An object: a class, a count of references, what it is, and what it holds references to."""

    def __init__(self, kind, references=1, held=(), **what):
        self.kind, self.references, self.held = kind, references, list(held)
        self.__dict__.update(what)


class Metal:
    """The Objective-C runtime and Metal."""

    def __init__(self, machine, system):
        self.machine, self.system = machine, system
        self.things, self.next, self.selectors, self.pools = {}, 0x7000, {}, []
        self.has_device, self.refuses, self.longest = True, None, 4 * PAGE + 5
        self.asked, self.calls, self.blocks = [], 0, 0
        # The datum whose address is the class of blocks on the stack.
        self.stack_block = machine.stub("__NSConcreteStackBlock")
        m = machine
        m.functions.update(
            _objc_msgSend=self.send,
            _sel_registerName=self.selector,
            _objc_getClass=self.class_named,
            _objc_retain=self.retain,
            _objc_release=self.release,
            _objc_autoreleasePoolPush=self.push,
            _objc_autoreleasePoolPop=self.pop,
            _MTLCreateSystemDefaultDevice=lambda *_: self.make("MTLDevice") if self.has_device else 0,
            _MTLCopyAllDevices=lambda *_: self.make("NSArray"),
        )

    # --- The runtime ---

    def make(self, kind, **what):
        self.next += 16
        self.things[self.next] = Thing(kind, **what)
        return self.next

    def lend(self, kind, **what):
        address = self.make(kind, **what)
        if not self.pools:
            raise Fault(f"a {kind} is lent out without a pool")
        self.pools[-1].append(address)
        return address

    def selector(self, name, *_):
        name = self.machine.text(name)
        if name not in self.selectors:
            address = self.system.allocate(len(name) + 1)
            self.machine.write(address, name.encode())
            self.selectors[name] = address
        return self.selectors[name]

    def class_named(self, name, *_):
        name = self.machine.text(name)
        if name not in ("NSString", "MTLResidencySetDescriptor"):
            return 0
        return self.make("Class", name=name)

    def thing(self, address):
        if address not in self.things:
            raise Fault(f"{address:#x} is no object, or none any more")
        return self.things[address]

    def retain(self, address, *_):
        self.thing(address).references += 1
        return address

    def push(self, *_):
        self.pools.append([])
        return len(self.pools)

    def pop(self, token, *_):
        if token != len(self.pools):
            raise Fault("a pool ends before one that began later")
        # What is lent out meanwhile goes with the rest.
        while self.pools[-1]:
            yield from self.release(self.pools[-1].pop())
        self.pools.pop()

    def release(self, address, *_):
        thing = self.thing(address)
        if thing.kind == "Class":
            return
        thing.references -= 1
        if thing.references:
            return
        del self.things[address]
        for other in thing.held:
            yield from self.release(other)
        if thing.kind == "MTLResidencySet" and (thing.requested or thing.held):
            raise Fault("a residency set goes away with its members")
        if getattr(thing, "block", 0):
            yield from self.call_block(thing.block, thing.address, thing.length)
            yield from self.dispose_of_block(thing.block)
        if getattr(thing, "own", 0):
            self.system.free(thing.own)
        if thing.kind == "MTLBuffer":
            # As the drivers of Apple's GPUs do.
            self.lend("NSString", text="what a buffer left")

    # --- Blocks, as clang describes them ---

    def copy_block(self, block):
        isa, flags, _, descriptor = struct.unpack("<QQQQ", self.machine.read(block, 32))
        if isa != self.stack_block or flags != 1 << 25:
            raise Fault(f"a block of class {isa:#x} and flags {flags:#x}")
        reserved, size, copy, _ = struct.unpack("<4Q", self.machine.read(descriptor, 32))
        if reserved or size < 32 or size % 8:
            raise Fault(f"a block of {size} bytes")
        to = self.system.allocate(size)
        self.machine.write(to, self.machine.read(block, size))
        self.machine.put_word(to, self.stack_block + 8)
        self.machine.put_word(to + 8, flags | 1 << 24 | 2)
        yield copy, to, block
        self.blocks += 1
        return to

    def call_block(self, block, *arguments):
        self.calls += 1
        yield self.machine.word(block + 16), block, *arguments

    def dispose_of_block(self, block):
        descriptor = self.machine.word(block + 24)
        yield self.machine.word(descriptor + 24), block
        self.system.free(block)
        self.blocks -= 1

    # --- Messages ---

    def send(self, to, selector, *words):
        if not to:
            return 0
        thing, name = self.thing(to), self.machine.text(selector)
        if selector != self.selectors.get(name):
            raise Fault(f"{name} is no selector of this runtime's")
        method = getattr(self, f"{thing.kind}_{name.replace(':', '_')}", None)
        if method is None:
            raise Fault(f"a {thing.kind} has no {name}")
        return method(to, thing, *words)

    def string(self, address):
        thing = self.thing(address)
        if thing.kind != "NSString":
            raise Fault(f"a {thing.kind} for a string")
        return thing.text

    def Class_stringWithUTF8String_(self, _to, _thing, text, *_):
        return self.lend("NSString", text=self.machine.text(text))

    def Class_new(self, _to, thing, *_):
        return self.make(thing.name)

    def NSArray_count(self, *_):
        return 0

    def NSString_UTF8String(self, _to, thing, *_):
        thing.own = self.system.allocate(len(thing.text) + 1)
        self.machine.write(thing.own, thing.text.encode())
        return thing.own

    def MTLDevice_respondsToSelector_(self, *_):
        return 1

    def MTLDevice_hasUnifiedMemory(self, *_):
        return 1

    def MTLDevice_name(self, *_):
        return self.lend("NSString", text="Emulated")

    def MTLDevice_maxBufferLength(self, *_):
        return self.longest

    def MTLDevice_recommendedMaxWorkingSetSize(self, *_):
        return 1 << 40

    def MTLDevice_currentAllocatedSize(self, *_):
        return sum(thing.length for thing in self.things.values() if thing.kind == "MTLBuffer")

    def MTLDevice_newBufferWithBytesNoCopy_length_options_deallocator_(
        self, _to, _thing, address, length, options, block, *_
    ):
        start = next((start for start in self.system.maps if start <= address), None)
        inside = any(
            start <= address and address + length <= start + size
            for start, size in self.system.maps.items()
        )
        if address % PAGE or length % PAGE or not 0 < length <= self.longest or not inside:
            raise Fault(f"a buffer over {length} bytes at {address:#x}")
        if options or not block:
            raise Fault(f"options {options:#x}, block {block:#x}")
        self.asked.append((address - start, length))
        if self.refuses == "nil":
            return 0
        copy = yield from self.copy_block(block)
        if self.refuses == "nil, and the block is called":
            yield from self.call_block(copy, address, length)
            yield from self.dispose_of_block(copy)
            return 0
        return self.make("MTLBuffer", address=address, length=length, block=copy)

    def MTLDevice_newBufferWithLength_options_(self, _to, _thing, length, options, *_):
        if options or not 0 < length <= 1 << 24:
            raise Fault(f"a buffer of {length} bytes, options {options:#x}")
        own = self.system.allocate(length)
        return self.make("MTLBuffer", address=own, length=length, own=own)

    def MTLBuffer_length(self, _to, thing, *_):
        return thing.length

    def MTLBuffer_contents(self, _to, thing, *_):
        return thing.address

    def MTLDevice_newLibraryWithSource_options_error_(self, _to, _thing, source, options, *_):
        if "kernel void sum_bf16(" not in self.string(source) or options:
            raise Fault("a source without the kernel")
        return self.make("MTLLibrary")

    def MTLLibrary_newFunctionWithName_(self, _to, _thing, name, *_):
        return self.make("MTLFunction") if self.string(name) == "sum_bf16" else 0

    def MTLDevice_newComputePipelineStateWithFunction_error_(self, _to, _thing, function, *_):
        if self.thing(function).kind != "MTLFunction":
            raise Fault("a state of no function")
        return self.make("MTLComputePipelineState")

    def MTLComputePipelineState_maxTotalThreadsPerThreadgroup(self, *_):
        return 32

    def MTLDevice_newCommandQueue(self, *_):
        return self.make("MTLCommandQueue")

    def MTLCommandQueue_commandBuffer(self, *_):
        return self.lend("MTLCommandBuffer", ran=False)

    def MTLCommandBuffer_computeCommandEncoder(self, to, _thing, *_):
        self.retain(to)
        return self.lend("MTLComputeCommandEncoder", held=[to], commands=to, buffers={}, bytes={})

    def MTLComputeCommandEncoder_setComputePipelineState_(self, _to, thing, state, *_):
        thing.held.append(self.retain(state))
        thing.state = self.thing(state).kind
        return RUBBISH

    def MTLComputeCommandEncoder_setBuffer_offset_atIndex_(self, _to, thing, buffer, offset, index, *_):
        thing.held.append(self.retain(buffer))
        thing.buffers[index] = (self.thing(buffer), offset)
        return RUBBISH

    def MTLComputeCommandEncoder_setBytes_length_atIndex_(self, _to, thing, text, length, index, *_):
        thing.bytes[index] = self.machine.read(text, length)
        return RUBBISH

    def MTLComputeCommandEncoder_dispatchThreadgroups_threadsPerThreadgroup_(
        self, _to, thing, groups, threads, *_
    ):
        # Structs of more than 16 bytes go by their address.
        sizes = [struct.unpack("<3Q", self.machine.read(size, 24)) for size in (groups, threads)]
        if sizes[0][1:] != (1, 1) or sizes[1][1:] != (1, 1) or sizes[1][0] > 32:
            raise Fault(f"sizes {sizes}")
        thing.threads = sizes[0][0] * sizes[1][0]
        return RUBBISH

    def MTLComputeCommandEncoder_endEncoding(self, _to, thing, *_):
        self.thing(thing.commands).work = thing
        return RUBBISH

    def MTLCommandBuffer_commit(self, _to, thing, *_):
        work = thing.work
        if work.state != "MTLComputePipelineState":
            raise Fault("no state is set")
        count = struct.unpack("<Q", work.bytes[3])[0]
        (buffer, offset), (sums, _), (checks, _) = (work.buffers[index] for index in range(3))
        if offset % 2 or offset + 2 * count > buffer.length:
            raise Fault(f"{count} elements from byte {offset} of {buffer.length}")
        elements = struct.unpack(f"<{count}H", self.machine.read(buffer.address + offset, 2 * count))
        for thread in range(work.threads):
            total, check = 0.0, 0
            for place in range(thread, count, work.threads):
                total += struct.unpack("<f", struct.pack("<I", elements[place] << 16))[0]
                check += (elements[place] + 1) * (2 * place + 1)
            self.machine.write(sums.address + 4 * thread, struct.pack("<f", total))
            self.machine.write(checks.address + 4 * thread, struct.pack("<I", check & 0xFFFFFFFF))
        thing.ran = True
        return RUBBISH

    def MTLCommandBuffer_waitUntilCompleted(self, _to, thing, *_):
        if not thing.ran:
            raise Fault("waiting for what was not committed")
        return RUBBISH

    def MTLCommandBuffer_error(self, *_):
        return 0

    def MTLDevice_newResidencySetWithDescriptor_error_(self, _to, _thing, descriptor, *_):
        if self.thing(descriptor).kind != "MTLResidencySetDescriptor":
            raise Fault("a residency set of no descriptor")
        return self.make("MTLResidencySet", requested=False)

    def MTLResidencySet_addAllocation_(self, _to, thing, allocation, *_):
        thing.held.append(self.retain(allocation))
        return RUBBISH

    def MTLResidencySet_removeAllAllocations(self, _to, thing, *_):
        held, thing.held = thing.held, []
        for allocation in held:
            yield from self.release(allocation)
        return RUBBISH

    def MTLResidencySet_commit(self, *_):
        return RUBBISH

    def MTLResidencySet_requestResidency(self, _to, thing, *_):
        thing.requested = True
        return RUBBISH

    def MTLResidencySet_endResidency(self, _to, thing, *_):
        thing.requested = False
        return RUBBISH


def run(path, name, check):
    machine = Machine(path)
    system = System(machine)
    metal = Metal(machine, system)
    check(machine, system, metal, name)


def expect(truth, what):
    if not truth:
        raise Fault(what)


def nothing_is_left(system, metal):
    left = [thing.kind for thing in metal.things.values() if thing.kind != "Class"]
    expect(not left, f"these live on: {left}")
    expect(not metal.blocks, f"{metal.blocks} blocks were not freed")
    expect(not system.maps, f"{len(system.maps)} mappings are left")
    expect(not metal.pools, "a pool did not end")


def plain(calls, asked=None, **settings):
    """A test that is one call, which gives 0, and leaves nothing behind."""

    def check(machine, system, metal, name):
        metal.__dict__.update(settings)
        line = machine.call("_" + name)
        expect(line == 0, f"line {line} of src/lib.rs")
        nothing_is_left(system, metal)
        expect(metal.calls == calls, f"blocks were called {metal.calls} times, not {calls}")
        expect(asked is None or metal.asked == asked, f"asked for {metal.asked}")

    return check


def outlives(machine, system, metal, name):
    buffer = machine.call("_" + name)
    expect(buffer in metal.things, "no buffer")
    expect(len(system.maps) == 1 and metal.calls == 0, "the pages went before the buffer")
    thing = metal.things[buffer]
    machine.read(thing.address, thing.length)
    # The command ends: its reference is the last.
    del metal.things[buffer]
    for step in metal.call_block(thing.block, thing.address, thing.length):
        machine.call(*step)
    expect(not system.maps, "the last user is gone, and the pages are not")
    for step in metal.dispose_of_block(thing.block):
        machine.call(*step)
    nothing_is_left(system, metal)


def is_noticed(machine, _system, _metal, name):
    try:
        noticed = machine.call("_" + name) != 0
    except Fault:
        noticed = True
    expect(noticed, "arguments on the stack were found in registers")


TESTS = [
    ("no_device", plain(0, has_device=False)),
    ("windows", plain(2, asked=[(PAGE, 3 * PAGE), (3 * PAGE, 4 * PAGE)])),
    ("refused", plain(0, refuses="nil")),
    ("refused", plain(1, refuses="nil, and the block is called")),
    ("sum", plain(1)),
    ("resident", plain(1)),
    ("leave_running", outlives),
    ("variadic", is_noticed),
]


def main(path):
    failed = 0
    for name, check in TESTS:
        try:
            run(path, name, check)
            print(f"{name} ... ok")
        except Fault as fault:
            failed += 1
            print(f"{name} ... FAILED: {fault}")
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) > 0)
