//! Which rows are shown?
//!
//! What people ask about first; the tables have the rest.

/// A bar: a row of a table, and a column of it.
pub struct Bar {
    pub group: &'static str,
    pub label: &'static str,
    pub peer: &'static str,
    pub table: &'static str,
    /// The row's first cell; and its second, where one row of the chart is not one of the table.
    pub row: (&'static str, Option<&'static str>),
    /// The column with the ratio.
    pub ratio: &'static str,
    /// The column with its goal, where it has one.
    pub goal: Option<&'static str>,
}

const fn bar(
    group: &'static str,
    label: &'static str,
    peer: &'static str,
    table: &'static str,
    row: (&'static str, Option<&'static str>),
    ratio: &'static str,
    goal: Option<&'static str>,
) -> Bar {
    Bar { group, label, peer, table, row, ratio, goal }
}

const FASTER: &str = "barest is faster";
const GOAL: Option<&str> = Some("goal");

const PARSE: &str = "Parse and prove a header";
const OPEN: &str = "Open a model, its pages being in memory";
const FIND: &str = "Find a tensor by its name";
const DECODE: &str = "Decode to f32 (candle: into a new tensor)";
const DOT: &str = "A matrix in BF16 times a vector";
const COLD: &str = "Read a file of which nothing is in memory";

/// Against what others use: how many times as fast.
#[rustfmt::skip]
pub const PEERS: [Bar; 22] = [
    bar(PARSE, "272 tensors", "safetensors", "parse", ("smollm2-272", None), FASTER, GOAL),
    bar(PARSE, "10,000 tensors", "safetensors", "parse", ("experts-10000", None), FASTER, GOAL),
    bar(PARSE, "92,000 tensors", "safetensors", "parse", ("experts-92000", None), FASTER, GOAL),
    bar(OPEN, "272 tensors", "memmap2, safetensors", "open", ("smollm2-272", None), FASTER, GOAL),
    bar(OPEN, "272, in a new process", "memmap2, safetensors", "fresh", ("smollm2-272", None), FASTER, GOAL),
    bar(OPEN, "92,000 tensors", "memmap2, safetensors", "open", ("experts-92000", None), FASTER, GOAL),
    bar(OPEN, "163 files", "memmap2, safetensors", "sets", ("deepseek-v3-163", None), "barest is faster than the first", GOAL),
    bar(OPEN, "163 files, an index", "memmap2, safetensors", "sets", ("deepseek-v3-163-index", None), "barest is faster than the first", GOAL),
    bar(OPEN, "163 files, an index", "candle", "sets", ("deepseek-v3-163-index", None), "than candle", None),
    bar(FIND, "among 10,000", "SafeTensors::tensor", "lookup", ("experts-10000, hits", None), "Model::get is faster than the first", GOAL),
    bar(FIND, "among 92,000", "SafeTensors::tensor", "lookup", ("experts-92000, hits", None), "Model::get is faster than the first", GOAL),
    bar(FIND, "among 92,000", "candle", "lookup", ("experts-92000, hits", None), "than candle", None),
    bar(DECODE, "BF16, 113 MB", "half", "decode", ("BF16 in memory", Some("half")), FASTER, GOAL),
    bar(DECODE, "BF16, 113 MB", "candle", "decode", ("BF16 in memory", Some("candle to_dtype")), FASTER, GOAL),
    bar(DECODE, "F16, in L2", "half", "decode", ("F16 in L2", Some("half")), FASTER, GOAL),
    bar(DECODE, "F8_E4M3, 57 MB", "candle", "decode", ("F8_E4M3 in memory", Some("candle to_dtype")), FASTER, GOAL),
    bar(DECODE, "F8_E4M3, in L2", "candle", "decode", ("F8_E4M3 in L2", Some("candle to_dtype")), FASTER, GOAL),
    bar(DOT, "113 MB", "candle", "dot", ("in memory", Some("candle: to_dtype(F32), then matmul")), FASTER, GOAL),
    bar(DOT, "113 MB", "widening all first", "dot", ("in memory", Some("barest: widen all, then dot")), FASTER, GOAL),
    bar(COLD, "all of it", "memmap2, safetensors", "cold", ("all", Some("memmap2 + safetensors")), FASTER, GOAL),
    bar(COLD, "all of it", "fs::read, safetensors", "cold", ("all", Some("fs::read + safetensors")), FASTER, GOAL),
    bar(COLD, "all of it", "candle", "cold", ("all", Some("candle: load each tensor")), FASTER, None),
];

const LIMITS_DECODE: &str = "Decode to f32";

/// Against what the machine can do at all.
#[rustfmt::skip]
pub const LIMITS: [Bar; 5] = [
    bar(LIMITS_DECODE, "BF16, in L2", "memcpy of as many bytes", "decode", ("BF16 in L2", Some("memcpy of as many bytes")), FASTER, GOAL),
    bar(LIMITS_DECODE, "BF16, 113 MB", "memcpy of as many bytes", "decode", ("BF16 in memory", Some("memcpy of as many bytes")), FASTER, GOAL),
    bar(DOT, "113 MB", "reading each weight once", "dot", ("in memory", Some("reading once")), FASTER, GOAL),
    bar(COLD, "all of it", "the disk, nothing kept", "cold", ("all", Some("the disk: O_DIRECT, nothing kept")), FASTER, GOAL),
    bar(COLD, "the first 1 %", "the best direct reads", "cold", ("the first 1 %", Some("the best of O_DIRECT")), FASTER, GOAL),
];
