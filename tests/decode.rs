//! Is every element of every dtype the number that it stands for, whichever way it is asked for?
//!
//! What is right was found by others. Tables of all patterns and files with every dtype are not
//! this project's to give away: `BAREST_FIXTURES` names the folder that has `known-answers/`. What
//! they say is kept here all the same: the small tables whole, of the large ones a digest and the
//! patterns that tell most. What rounding gives was recorded from NumPy 2.4.6 and ml_dtypes 0.6.0.

#[path = "../src/barest/skip.rs"]
mod skip;

use barest::{
    Bf16, Bool, C64, Dtype, Element, Error, ErrorKind, F4, F6E2M3, F6E3M2, F8E4M3, F8E4M3Fnuz,
    F8E5M2, F8E5M2Fnuz, F8E8M0, F16, Float, Model, Plain, TensorView,
};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;

fn known_answers() -> Option<PathBuf> {
    let named = env::var_os("BAREST_FIXTURES").map(PathBuf::from);
    let beside = || {
        let repository = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
        Some(repository.join("../shared/fixtures")).filter(|path| path.is_dir())
    };
    let folder = named.or_else(beside).map(|fixtures| fixtures.join("known-answers"));
    if folder.is_none() {
        skip::skip("BAREST_FIXTURES", "it should name the folder of real files and known answers");
    }
    folder
}

/// A model of one tensor, `t`, whose data begins `odd` bytes behind a multiple of 16, in the file
/// and in memory.
fn model(dtype: Dtype, shape: &[u64], data: &[u8], odd: usize) -> Model {
    let end = data.len();
    let mut header =
        format!(r#"{{"t":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[0,{end}]}}}}"#);
    while (8 + header.len()) % 16 != odd {
        header.push(' ');
    }
    let len = (header.len() as u64).to_le_bytes();
    Model::from_bytes(&[&len, header.as_bytes(), data].concat()).unwrap()
}

/// Calls a function for each float dtype.
macro_rules! each_float {
    ($work:ident $arguments:tt) => {
        $work::<F4> $arguments;
        $work::<F6E2M3> $arguments;
        $work::<F6E3M2> $arguments;
        $work::<F8E4M3> $arguments;
        $work::<F8E5M2> $arguments;
        $work::<F8E8M0> $arguments;
        $work::<F8E4M3Fnuz> $arguments;
        $work::<F8E5M2Fnuz> $arguments;
        $work::<F16> $arguments;
        $work::<Bf16> $arguments;
        $work::<f32> $arguments;
        $work::<f64> $arguments;
    };
}

// The ways to ask.

type Ways<T> = Vec<(&'static str, Vec<T>)>;

/// Each way to ask for single values, and what it answers.
fn one_by_one<E: Element, T>(view: TensorView<'_>, show: impl Fn(E::Value) -> T) -> Ways<T> {
    let elements = view.elements::<E>().unwrap();
    let mut backwards: Vec<E::Value> = elements.iter().rev().collect();
    backwards.reverse();
    let mut buffer = vec![E::Value::default(); elements.len()];
    elements.read_into(&mut buffer).unwrap();
    let (mut rows, mut parts) = (Vec::new(), Vec::new());
    match *view.shape() {
        [] => rows.extend(elements.iter()),
        [count, ..] => (0..count as usize).for_each(|row| {
            rows.extend(elements.row(row).unwrap().iter());
            parts.extend(view.row(row).unwrap().values::<E>().unwrap());
        }),
    }
    if view.shape().is_empty() {
        parts.clone_from(&rows);
    }
    let by_number = (0..elements.len()).map(|index| elements.get(index).unwrap());
    let ways = [
        ("get", by_number.collect()),
        ("iter", elements.iter().collect()),
        ("iter from the end", backwards),
        ("to_vec", elements.to_vec().unwrap()),
        ("read_into", buffer),
        ("rows", rows),
        ("rows of the view", parts),
        ("slice", view.slice(&[]).unwrap().values::<E>().unwrap().collect()),
    ];
    ways.map(|(way, values)| (way, values.into_iter().map(&show).collect())).into()
}

/// Each way to ask for `f32`, and the bits that it answers with.
fn as_f32<E: Float>(view: TensorView<'_>) -> Ways<u32> {
    let (elements, floats) = (view.elements::<E>().unwrap(), view.floats().unwrap());
    let part = view.slice(&[]).unwrap();
    assert_eq!((floats.len(), floats.is_empty()), (elements.len(), elements.is_empty()));
    assert_eq!(floats.shape(), elements.shape());
    assert_eq!((floats.iter().len(), floats.get(floats.len())), (floats.len(), None));
    let read = |read: &dyn Fn(&mut [f32]) -> Result<(), Error>| {
        let mut buffer = vec![-7.0; elements.len()];
        read(&mut buffer).unwrap();
        buffer
    };
    let mut backwards: Vec<f32> = floats.iter().rev().collect();
    backwards.reverse();
    let mut rows = [const { Vec::new() }; 4];
    match *view.shape() {
        [] => rows = rows.map(|_| floats.iter().collect()),
        [count, ..] => (0..count as usize).for_each(|row| {
            rows[0].extend(floats.row(row).unwrap().iter());
            rows[1].extend(floats.row(row).unwrap().to_f32().unwrap());
            rows[2].extend(elements.row(row).unwrap().to_f32().unwrap());
            rows[3].extend(view.row(row).unwrap().to_f32().unwrap());
        }),
    }
    let [by_one, by_many, of_elements, of_view] = rows;
    let by_number = (0..floats.len()).map(|index| floats.get(index).unwrap());
    let ways = [
        ("get of floats", by_number.collect()),
        ("iter of floats", floats.iter().collect()),
        ("iter of floats from the end", backwards),
        ("rows of floats", by_one),
        ("to_f32 of rows of floats", by_many),
        ("to_f32 of rows", of_elements),
        ("to_f32 of rows of the view", of_view),
        ("to_f32", elements.to_f32().unwrap()),
        ("to_f32 of floats", floats.to_f32().unwrap()),
        ("to_f32 of the view", view.to_f32().unwrap()),
        ("to_f32 of a slice", part.to_f32().unwrap()),
        ("read_f32", read(&|buffer| elements.read_f32(buffer))),
        ("read_f32 of floats", read(&|buffer| floats.read_f32(buffer))),
        ("read_f32 of the view", read(&|buffer| view.read_f32(buffer))),
        ("read_f32 of a slice", read(&|buffer| part.read_f32(buffer))),
    ];
    let mut ways: Ways<u32> = ways.map(|(way, values)| (way, bits::<E>(values))).into();
    let single = one_by_one::<E, f32>(view, E::to_f32);
    ways.extend(single.into_iter().map(|(way, values)| (way, bits::<E>(values))));
    ways
}

/// The bits of numbers. Which NaN an F64 becomes is the machine's choice, so there all are one.
fn bits<E: Element>(values: Vec<f32>) -> Vec<u32> {
    let is_free = |value: f32| E::DTYPE == Dtype::F64 && value.is_nan();
    let of_one = |value: f32| if is_free(value) { f32::NAN.to_bits() } else { value.to_bits() };
    values.into_iter().map(of_one).collect()
}

fn agree<T: PartialEq + std::fmt::Debug>(case: &str, ways: Ways<T>, expected: &[T]) {
    for (way, found) in ways {
        assert_eq!(found.len(), expected.len(), "{case}, {way}");
        let differs = (0..found.len()).find(|&index| found[index] != expected[index]);
        if let Some(index) = differs {
            panic!("{case}, {way}: {index} is {:x?}, not {:x?}", found[index], expected[index]);
        }
    }
}

/// Patterns packed without gaps, the first in the lowest bits.
fn packed(patterns: impl Iterator<Item = u64>, bits: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut at = 0;
    for pattern in patterns {
        for bit in 0..bits {
            if at % 8 == 0 {
                bytes.push(0);
            }
            *bytes.last_mut().unwrap() |= ((pattern >> bit & 1) as u8) << (at % 8);
            at += 1;
        }
    }
    bytes
}

// All patterns.

/// Of each table of known answers the name, and the 64-bit FNV-1a digest of its bytes: for each
/// pattern in turn the bits of the `f32`, little-endian.
const TABLES: [(Dtype, &str, u64); 10] = [
    (Dtype::F4, "f4", 0x2403_bb76_b85d_fea5),
    (Dtype::F6E2M3, "f6_e2m3", 0x7ffa_cb24_ad8b_0aa5),
    (Dtype::F6E3M2, "f6_e3m2", 0x25da_1343_4201_d785),
    (Dtype::F8E4M3, "f8_e4m3", 0xdad1_d9c5_0f74_9ca5),
    (Dtype::F8E5M2, "f8_e5m2", 0x6c1e_56b6_fb09_c905),
    (Dtype::F8E8M0, "f8_e8m0", 0x6d2c_8b41_c3f0_e5a5),
    (Dtype::F8E4M3Fnuz, "f8_e4m3fnuz", 0xf518_51cb_11c6_3018),
    (Dtype::F8E5M2Fnuz, "f8_e5m2fnuz", 0x94ae_6fc4_93d4_9818),
    (Dtype::F16, "f16", 0xb065_9868_ec05_3145),
    (Dtype::Bf16, "bf16", 0x43a1_3836_c4ca_3b25),
];

fn digest(values: &[u32]) -> u64 {
    let bytes = values.iter().flat_map(|bits| bits.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[test]
fn every_pattern_is_the_number_that_is_known() {
    let folder = known_answers();
    let table = |name: &str| -> Option<Vec<u32>> {
        let path = folder.as_ref()?.join(format!("tables/{name}_to_f32.u32le"));
        let bytes = fs::read(path).unwrap();
        Some(
            bytes
                .chunks_exact(4)
                .map(|bits| u32::from_le_bytes(bits.try_into().unwrap()))
                .collect(),
        )
    };
    each_float!(known(&table));
}

fn known<E: Float>(table: &dyn Fn(&str) -> Option<Vec<u32>>) {
    let Some((dtype, name, expected)) = TABLES.into_iter().find(|row| row.0 == E::DTYPE) else {
        assert!(matches!(E::DTYPE, Dtype::F32 | Dtype::F64));
        return;
    };
    let patterns = 1 << dtype.bits();
    let data = packed(0..patterns, dtype.bits());
    for odd in [0, 1, 6, 15] {
        let model = model(dtype, &[patterns / 16, 16], &data, odd);
        let ways = as_f32::<E>(model.tensor("t").unwrap());
        let known = table(name).unwrap_or_else(|| ways[0].1.clone());
        agree(name, ways, &known);
        assert_eq!(digest(&known), expected, "{name}");
    }
}

/// The small tables: all values, and the bytes of a file that has all patterns in turn.
const WHOLE: [(Dtype, &str, &str); 3] = [
    (Dtype::F4, "1032547698badcfe", "0 0.5 1 1.5 2 3 4 6 -0 -0.5 -1 -1.5 -2 -3 -4 -6"),
    (
        Dtype::F6E2M3,
        PACKED_IN_SIX,
        "0 0.125 0.25 0.375 0.5 0.625 0.75 0.875 1 1.125 1.25 1.375 1.5 1.625 1.75 1.875 2 2.25
         2.5 2.75 3 3.25 3.5 3.75 4 4.5 5 5.5 6 6.5 7 7.5 -0 -0.125 -0.25 -0.375 -0.5 -0.625
         -0.75 -0.875 -1 -1.125 -1.25 -1.375 -1.5 -1.625 -1.75 -1.875 -2 -2.25 -2.5 -2.75 -3
         -3.25 -3.5 -3.75 -4 -4.5 -5 -5.5 -6 -6.5 -7 -7.5",
    ),
    (
        Dtype::F6E3M2,
        PACKED_IN_SIX,
        "0 0.0625 0.125 0.1875 0.25 0.3125 0.375 0.4375 0.5 0.625 0.75 0.875 1 1.25 1.5 1.75 2
         2.5 3 3.5 4 5 6 7 8 10 12 14 16 20 24 28 -0 -0.0625 -0.125 -0.1875 -0.25 -0.3125 -0.375
         -0.4375 -0.5 -0.625 -0.75 -0.875 -1 -1.25 -1.5 -1.75 -2 -2.5 -3 -3.5 -4 -5 -6 -7 -8 -10
         -12 -14 -16 -20 -24 -28",
    ),
];

const PACKED_IN_SIX: &str = "40200c44611c48a22c4ce33c50244d54655d58a66d5ce77d\
                             60288e64699e68aaae6cebbe702ccf746ddf78aeef7cefff";

/// Of the others what is at an edge: zeros, the first and the last subnormal, the first normal, one
/// and its neighbours, the largest, infinity, NaN quiet and signalling. Written as pattern=number,
/// or =#bits for a NaN other than the usual one.
const TELLING: [(Dtype, &str); 7] = [
    (
        Dtype::F8E4M3,
        "00=0 80=-0 01=0.001953125 02=0.00390625 07=0.013671875 08=0.015625 09=0.017578125
         87=-0.013671875 30=0.5 38=1 3c=1.5 b8=-1 40=2 77=240 78=256 7c=384 7e=448 7f=NaN fe=-448
         ff=NaN",
    ),
    (
        Dtype::F8E5M2,
        "00=0 80=-0 01=1.5258789e-5 02=3.0517578e-5 03=4.5776367e-5 04=6.1035156e-5
         05=7.6293945e-5 83=-4.5776367e-5 38=0.5 3c=1 3e=1.5 bc=-1 44=4 77=28672 78=32768
         7b=57344 7c=inf 7d=NaN 7f=NaN fb=-57344 fc=-inf fd=NaN ff=NaN",
    ),
    (
        Dtype::F8E8M0,
        "00=5.877472e-39 01=1.1754944e-38 02=2.3509887e-38 40=1.0842022e-19 7d=0.25 7e=0.5 7f=1
         80=2 81=4 bf=1.8446744e19 c0=3.689349e19 fd=8.507059e37 fe=1.7014118e38 ff=NaN",
    ),
    (
        Dtype::F8E4M3Fnuz,
        "00=0 80=NaN 01=9.765625e-4 02=0.001953125 07=0.0068359375 08=0.0078125 09=0.0087890625
         81=-9.765625e-4 87=-0.0068359375 38=0.5 40=1 44=1.5 c0=-1 77=120 78=128 7e=224 7f=240
         ff=-240",
    ),
    (
        Dtype::F8E5M2Fnuz,
        "00=0 80=NaN 01=7.6293945e-6 02=1.5258789e-5 03=2.2888184e-5 04=3.0517578e-5
         05=3.8146973e-5 81=-7.6293945e-6 83=-2.2888184e-5 3c=0.5 40=1 42=1.5 c0=-1 77=14336
         7b=28672 7c=32768 7e=49152 7f=57344 ff=-57344",
    ),
    (
        Dtype::F16,
        "0000=0 8000=-0 0001=5.9604645e-8 0002=1.1920929e-7 0003=1.7881393e-7 8001=-5.9604645e-8
         0200=3.0517578e-5 03fe=6.0915947e-5 03ff=6.097555e-5 83ff=-6.097555e-5 0400=6.1035156e-5
         0401=6.109476e-5 07ff=1.2201071e-4 2e66=0.099975586 3555=0.33325195 3bff=0.9995117
         3c00=1 3c01=1.0009766 bc00=-1 4248=3.140625 6400=1024 6bff=4094 7bff=65504 fbff=-65504
         7c00=inf fc00=-inf 7c01=#7f802000 7dff=#7fbfe000 7e00=NaN fe00=#ffc00000 fc01=#ff802000
         7fff=#7fffe000",
    ),
    (
        Dtype::Bf16,
        "0000=0 8000=-0 0001=9.1835e-41 8001=-9.1835e-41 0040=5.877472e-39 007f=1.1663108e-38
         0080=1.1754944e-38 8080=-1.1754944e-38 3d4d=0.050048828 3e00=0.125 3f7f=0.99609375
         3f80=1 3f81=1.0078125 bf80=-1 4049=3.140625 c000=-2 4300=128 477f=65280
         5f80=1.8446744e19 7f7f=3.3895314e38 ff7f=-3.3895314e38 7f80=inf ff80=-inf 7f81=#7f810000
         7fbf=#7fbf0000 7fc0=NaN ffc0=#ffc00000 ff81=#ff810000 7fff=#7fff0000",
    ),
];

/// What a number of the tables above stands for.
fn bits_of(text: &str) -> u32 {
    match text.strip_prefix('#') {
        Some(bits) => u32::from_str_radix(bits, 16).unwrap(),
        None if text == "NaN" => 0x7fc0_0000,
        None => text.parse::<f32>().unwrap().to_bits(),
    }
}

fn bytes_of(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<u32> = hexadecimal.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

#[test]
fn the_small_tables_are_whole() {
    each_float!(whole());
}

fn whole<E: Float>() {
    let Some((dtype, bytes, values)) = WHOLE.into_iter().find(|row| row.0 == E::DTYPE) else {
        return assert!(E::DTYPE.bits() >= 8);
    };
    let expected: Vec<u32> = values.split_whitespace().map(bits_of).collect();
    assert_eq!(expected.len(), 1 << dtype.bits());
    let data = bytes_of(bytes);
    assert_eq!(data, packed(0..1 << dtype.bits(), dtype.bits()));
    let model = model(dtype, &[expected.len() as u64 / 4, 4], &data, 3);
    agree(dtype.name(), as_f32::<E>(model.tensor("t").unwrap()), &expected);
}

#[test]
fn the_telling_patterns_are_what_they_are_known_to_be() {
    each_float!(telling());
}

fn telling<E: Float>() {
    let Some((dtype, text)) = TELLING.into_iter().find(|row| row.0 == E::DTYPE) else {
        return assert!(E::DTYPE.bits() < 8 || E::DTYPE.bits() >= 32);
    };
    let pairs = text.split_whitespace().map(|pair| pair.split_once('=').unwrap());
    let (patterns, expected): (Vec<u64>, Vec<u32>) = pairs
        .map(|(pattern, number)| (u64::from_str_radix(pattern, 16).unwrap(), bits_of(number)))
        .unzip();
    assert!(patterns.len() > 12);
    let data = packed(patterns.into_iter(), dtype.bits());
    let model = model(dtype, &[expected.len() as u64], &data, 5);
    agree(dtype.name(), as_f32::<E>(model.tensor("t").unwrap()), &expected);
}

// Every dtype.

/// The elements of a tensor as text, in each way that there is: integers in decimal, of floats the
/// bits.
fn texts(view: TensorView<'_>) -> Ways<String> {
    let float = |value: f32| format!("{:08x}", value.to_bits());
    match view.dtype() {
        Dtype::Bool => one_by_one::<Bool, _>(view, |value| value.to_string()),
        Dtype::U8 => one_by_one::<u8, _>(view, |value| value.to_string()),
        Dtype::I8 => one_by_one::<i8, _>(view, |value| value.to_string()),
        Dtype::U16 => one_by_one::<u16, _>(view, |value| value.to_string()),
        Dtype::I16 => one_by_one::<i16, _>(view, |value| value.to_string()),
        Dtype::U32 => one_by_one::<u32, _>(view, |value| value.to_string()),
        Dtype::I32 => one_by_one::<i32, _>(view, |value| value.to_string()),
        Dtype::U64 => one_by_one::<u64, _>(view, |value| value.to_string()),
        Dtype::I64 => one_by_one::<i64, _>(view, |value| value.to_string()),
        Dtype::F4 => one_by_one::<F4, _>(view, float),
        Dtype::F6E2M3 => one_by_one::<F6E2M3, _>(view, float),
        Dtype::F6E3M2 => one_by_one::<F6E3M2, _>(view, float),
        Dtype::F8E4M3 => one_by_one::<F8E4M3, _>(view, float),
        Dtype::F8E5M2 => one_by_one::<F8E5M2, _>(view, float),
        Dtype::F8E8M0 => one_by_one::<F8E8M0, _>(view, float),
        Dtype::F8E4M3Fnuz => one_by_one::<F8E4M3Fnuz, _>(view, float),
        Dtype::F8E5M2Fnuz => one_by_one::<F8E5M2Fnuz, _>(view, float),
        Dtype::F16 => one_by_one::<F16, _>(view, float),
        Dtype::Bf16 => one_by_one::<Bf16, _>(view, float),
        Dtype::F32 => one_by_one::<f32, _>(view, float),
        Dtype::F64 => one_by_one::<f64, _>(view, |value| format!("{:016x}", value.to_bits())),
        Dtype::C64 => one_by_one::<C64, _>(view, |(re, im)| float(re) + "," + &float(im)),
        unknown => panic!("{unknown} is not in this table"),
    }
}

#[test]
fn elements_of_whole_bytes_are_little_endian() {
    for (dtype, bytes, expected) in [
        (Dtype::Bool, "00 01", "false true"),
        (Dtype::U8, "00 01 7f 80 ff", "0 1 127 128 255"),
        (Dtype::I8, "00 01 7f 80 ff", "0 1 127 -128 -1"),
        (Dtype::U16, "0100 0001 ff7f 0080 feff", "1 256 32767 32768 65534"),
        (Dtype::I16, "0100 0001 ff7f 0080 feff", "1 256 32767 -32768 -2"),
        (
            Dtype::U32,
            "04030201 ffffff7f 00000080 feffffff",
            "16909060 2147483647 2147483648 4294967294",
        ),
        (Dtype::I32, "04030201 ffffff7f 00000080 feffffff", "16909060 2147483647 -2147483648 -2"),
        (
            Dtype::U64,
            "0807060504030201 ffffffffffffff7f 0000000000000080 feffffffffffffff",
            "72623859790382856 9223372036854775807 9223372036854775808 18446744073709551614",
        ),
        (
            Dtype::I64,
            "0807060504030201 ffffffffffffff7f 0000000000000080 feffffffffffffff",
            "72623859790382856 9223372036854775807 -9223372036854775808 -2",
        ),
        // Signalling NaNs among them: they stay so.
        (Dtype::F32, "0000803f 010080ff 5634127f 00000080", "3f800000 ff800001 7f123456 80000000"),
        (
            Dtype::F64,
            "000000000000f0bf 010000000000f07f 0807060504030201",
            "bff0000000000000 7ff0000000000001 0102030405060708",
        ),
        (Dtype::C64, "0000803f 000000c0 010080ff 5634127f", "3f800000,c0000000 ff800001,7f123456"),
    ] {
        let expected: Vec<String> = expected.split(' ').map(str::to_owned).collect();
        for odd in 0..16 {
            let model = model(dtype, &[expected.len() as u64], &bytes_of(bytes), odd);
            agree(dtype.name(), texts(model.tensor("t").unwrap()), &expected);
        }
    }
}

/// A row of `answers.tsv`; its cells are file, tensor, dtype, index, part, raw, class, bits as f64,
/// bits as f32, value.
struct Answer<'a>([&'a str; 10]);

impl Answer<'_> {
    /// As [`texts`] should have it; `table` has the numbers of all patterns.
    fn text(&self, dtype: Dtype, table: &[u32]) -> String {
        let [.., raw, class, _, as_f32, value] = self.0;
        match (dtype, class) {
            (Dtype::F64 | Dtype::F32, _) | (Dtype::C64, "nan") => raw.to_owned(),
            (_, "nan") => format!("{:08x}", table[usize::from_str_radix(raw, 16).unwrap()]),
            _ if as_f32.is_empty() => value.to_owned(),
            _ => as_f32.to_owned(),
        }
    }

    /// The nearest `f32`, by way of all its decimal digits where the table leaves it open.
    fn nearest(&self, text: &str) -> u32 {
        let [.., class, as_f64, as_f32, _] = self.0;
        let bits = match (class, as_f32) {
            ("nan", _) if text.len() == 16 => return f32::NAN.to_bits(),
            ("nan", _) => text,
            (_, "") => {
                let number = f64::from_bits(u64::from_str_radix(as_f64, 16).unwrap());
                return format!("{number:.1080}").parse::<f32>().unwrap().to_bits();
            }
            _ => as_f32,
        };
        u32::from_str_radix(bits, 16).unwrap()
    }
}

#[test]
fn a_file_with_every_dtype_holds_what_is_known_of_it() {
    let Some(folder) = known_answers() else { return };
    let answers = fs::read_to_string(folder.join("answers.tsv")).unwrap();
    let mut tensors: BTreeMap<String, Vec<Answer>> = BTreeMap::new();
    for line in answers.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let answer = Answer(cells.try_into().unwrap());
        tensors.entry(answer.0[..2].join(" ")).or_default().push(answer);
    }
    let (mut dtypes, mut empty) = (Vec::new(), 0);
    for file in ["all_dtypes.safetensors", "f6.safetensors"] {
        let model = Model::read(folder.join(file)).unwrap();
        for view in model.tensors() {
            let Some(answers) = tensors.remove(&format!("{file} {}", view.name())) else {
                assert!(view.is_empty(), "{view:?} has no answers");
                empty += 1;
                continue;
            };
            let dtype = view.dtype();
            let row = TABLES.into_iter().find(|row| row.0 == dtype);
            let table = row.map_or(Vec::new(), |(_, name, _)| {
                let path = folder.join(format!("tables/{name}_to_f32.u32le"));
                let bytes = fs::read(path).unwrap();
                bytes.chunks(4).map(|bits| u32::from_le_bytes(bits.try_into().unwrap())).collect()
            });
            let mut expected: Vec<String> =
                answers.iter().map(|answer| answer.text(dtype, &table)).collect();
            let indices = answers.iter().map(|answer| answer.0[3].parse::<usize>().unwrap());
            if dtype == Dtype::C64 {
                expected = expected.chunks(2).map(|parts| parts.join(",")).collect();
                assert!(indices.eq((0..view.len()).flat_map(|index| [index, index])));
            } else {
                assert!(indices.eq(0..view.len()), "{view:?}");
            }
            agree(view.name(), texts(view), &expected);
            let nearest = |(answer, text): (&Answer, &String)| answer.nearest(text);
            if let Ok(floats) = view.floats() {
                let nearest: Vec<u32> = answers.iter().zip(&expected).map(nearest).collect();
                assert_eq!(floats.len(), nearest.len());
                each_float!(numbers(view, &nearest));
            }
            dtypes.push(dtype);
        }
    }
    dtypes.sort();
    dtypes.dedup();
    assert_eq!(dtypes, Dtype::ALL, "no dtype is left out");
    assert_eq!(empty, 1);

    // What is left are truth values that are none.
    let left: Vec<(String, Vec<Answer>)> = tensors.into_iter().collect();
    let [(place, answers)] = &left[..] else { panic!("{} tensors were not asked for", left.len()) };
    let (file, name) = place.split_once(' ').unwrap();
    let bad = answers.iter().find(|answer| answer.0[6] == "invalid").unwrap();
    let model = Model::read(folder.join(file)).unwrap();
    let error = model.tensor(name).unwrap().bools().unwrap_err();
    let ErrorKind::NotABool { index, found } = *error.kind() else { panic!("{error}") };
    assert_eq!((&*index.to_string(), &*format!("{found:02x}")), (bad.0[3], bad.0[5]));
}

fn numbers<E: Float>(view: TensorView<'_>, expected: &[u32]) {
    if view.dtype() == E::DTYPE {
        agree(view.name(), as_f32::<E>(view), expected);
    }
}

/// Ties, and what stands beside them; the edges of the subnormal, of the normal and of all numbers:
/// the bits of an F64, and those of the F32 that NumPy makes of it.
const F64_TO_F32: &str = "
    0000000000000000 00000000  8000000000000000 80000000  0000000000000001 00000000
    8000000000000001 80000000  3ff0000000000000 3f800000  c000000000000000 c0000000
    3fb999999999999a 3dcccccd  3fd5555555555555 3eaaaaab  400921fb54442d18 40490fdb
    7e37e43c8800759c 7f800000  fe37e43c8800759c ff800000  7ff0000000000000 7f800000
    fff0000000000000 ff800000  7fefffffffffffff 7f800000  3ff000000fffffff 3f800000
    3ff0000010000000 3f800000  3ff0000010000001 3f800001  bff0000010000000 bf800000
    3ff000002fffffff 3f800001  3ff0000030000000 3f800002  3ff0000030000001 3f800002
    bff0000030000000 bf800002  3fffffffefffffff 3fffffff  3ffffffff0000000 40000000
    3ffffffff0000001 40000000  bffffffff0000000 c0000000  368fffffffffffff 00000000
    3690000000000000 00000000  3690000000000001 00000001  b690000000000000 80000000
    36a7ffffffffffff 00000001  36a8000000000000 00000002  36a8000000000001 00000002
    b6a8000000000000 80000002  380fffffdfffffff 007fffff  380fffffe0000000 00800000
    380fffffe0000001 00800000  b80fffffe0000000 80800000  47efffffefffffff 7f7fffff
    47effffff0000000 7f800000  47effffff0000001 7f800000  c7effffff0000000 ff800000
    36a0000000000000 00000001  3810000000000000 00800000  47efffffe0000000 7f7fffff
    4170000010000000 4b800000  4170000030000000 4b800002  c170000010000000 cb800000
    3696d601ad376ab9 00000001  368ff868bf4d956a 00000000  369036aa2680f22c 00000001
    bb2eb4c2f0000000 9975a618  3e8d1b2550000000 3468d92a  be837a0b176e33f1 b41bd059
    45d3707370000000 6e9b839c  3c35e0ddcc330457 21af06ee  384cbbeb70000000 0265df5c
    45a8d5a9d5491481 6d46ad4f  42b827d610000000 55c13eb0  36bf0ce690000000 00000004
    bd2aa0b2dc17735a a9550597  c0f3a5eabde6e221 c79d2f56  43b0d986d78e219e 5d86cc37
    c4fff06aede4640f e7ff8357  3ba397bb70000000 1d1cbddc  47b5c191d0000000 7dae0c8e";

#[test]
fn an_f64_is_rounded_to_the_nearest_f32() {
    let pairs: Vec<&str> = F64_TO_F32.split_whitespace().collect();
    let (numbers, nearest): (Vec<[u8; 8]>, Vec<u32>) = pairs
        .chunks_exact(2)
        .map(|pair| {
            let number = u64::from_str_radix(pair[0], 16).unwrap();
            (number.to_le_bytes(), u32::from_str_radix(pair[1], 16).unwrap())
        })
        .unzip();
    assert_eq!(nearest.len(), 66);
    let model = model(Dtype::F64, &[22, 3], &numbers.concat(), 1);
    agree("F64", as_f32::<f64>(model.tensor("t").unwrap()), &nearest);
}

// One way and the other.

/// The same bytes every time, and no order in them.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 32) as u8).collect()
    }
}

#[test]
fn all_ways_agree_at_every_address() {
    each_float!(ways_agree());
}

fn ways_agree<E: Float>() {
    let mut noise = Noise(E::DTYPE as u64 + 1);
    for shape in [&[][..], &[4], &[0], &[1, 8], &[3, 4], &[0, 5], &[2, 0], &[5, 2, 4], &[3, 68]] {
        // Rows of whole bytes: others are errors.
        if shape.len() < 2 && E::DTYPE.bits() < 8 {
            continue;
        }
        let len = shape.iter().product::<u64>() * E::DTYPE.bits() / 8;
        let data = noise.bytes(len as usize);
        for odd in 0..16 {
            let model = model(E::DTYPE, shape, &data, odd);
            let ways = as_f32::<E>(model.tensor("t").unwrap());
            let first = ways[0].1.clone();
            agree(&format!("{} {shape:?}, {odd} bytes off", E::DTYPE), ways, &first);
        }
    }
}

/// Enough for what is done many at a time, in larger and smaller pieces, and with some left over.
#[test]
fn a_large_tensor_is_the_same_many_at_a_time() {
    each_float!(large());
}

fn large<E: Float>() {
    let (rows, columns) = (7, 41_004);
    let mut noise = Noise(77);
    let data = noise.bytes(rows * columns * E::DTYPE.bits() as usize / 8);
    for odd in [0, 3] {
        let model = model(E::DTYPE, &[rows as u64, columns as u64], &data, odd);
        let view = model.tensor("t").unwrap();
        let elements = view.elements::<E>().unwrap();
        let one_by_one = bits::<E>(elements.iter().map(E::to_f32).collect());
        let by_row = |row| view.floats().unwrap().row(row).unwrap().to_f32().unwrap();
        let ways = [
            ("many at a time", view.to_f32().unwrap()),
            ("row by row", (0..rows).flat_map(by_row).collect()),
        ];
        let ways = ways.map(|(way, values)| (way, bits::<E>(values)));
        agree(E::DTYPE.name(), ways.into(), &one_by_one);
    }
}

/// Types that are borrowed from the file as they are, and the bits of the numbers they stand for.
#[test]
fn a_borrowed_number_is_the_same_number() {
    fn check<T: Plain + Float>(to_f32: fn(T) -> f32) {
        let data = Noise(5).bytes(4096);
        let model = model(T::DTYPE, &[4096 / size_of::<T>() as u64], &data, 0);
        let view = model.tensor("t").unwrap();
        let numbers: &[T] = match view.as_slice() {
            Err(error) if matches!(error.kind(), ErrorKind::ForeignByteOrder) => return,
            numbers => numbers.unwrap(),
        };
        let found = numbers.iter().map(|&number| to_f32(number)).collect();
        assert_eq!(bits::<T>(found), bits::<T>(view.to_f32().unwrap()), "{}", T::NAME);
    }
    check::<Bf16>(Bf16::to_f32);
    check::<F16>(F16::to_f32);
    check::<F8E4M3>(F8E4M3::to_f32);
    check::<F8E5M2>(F8E5M2::to_f32);
    check::<F8E8M0>(F8E8M0::to_f32);
    check::<F8E4M3Fnuz>(F8E4M3Fnuz::to_f32);
    check::<F8E5M2Fnuz>(F8E5M2Fnuz::to_f32);
    check::<f32>(|number| number);
    check::<f64>(|number| number as f32);
}

// Dot products.

/// Data whose numbers are neither huge nor tiny nor none, so that what is lost by rounding can be
/// told.
fn moderate<E: Float>(len: usize) -> Vec<u8> {
    let mut noise = Noise(E::DTYPE as u64 + 100);
    let mut between = || (noise.next() >> 40) as f32 / (1 << 22) as f32 - 2.0;
    match E::DTYPE.bits() {
        64 => (0..len).flat_map(|_| (f64::from(between()) * 1.1).to_le_bytes()).collect(),
        32 => (0..len).flat_map(|_| between().to_le_bytes()).collect(),
        width => {
            let all = model(E::DTYPE, &[1 << width], &packed(0..1 << width, width), 0);
            let numbers = all.tensor("t").unwrap().to_f32().unwrap();
            let is_moderate = |number: f32| number == 0.0 || (2e-4..2e4).contains(&number.abs());
            let patterns: Vec<u64> =
                (0..1 << width).filter(|&pattern| is_moderate(numbers[pattern as usize])).collect();
            let one = |_| patterns[noise.next() as usize % patterns.len()];
            packed((0..len).map(one), width)
        }
    }
}

/// The documented order: product i goes to sum i mod 16, and the sums are added in a tree.
fn dot_by_the_text(values: &[f32], factors: &[f32], fused: bool) -> f32 {
    let mut sums = [0f32; 16];
    for (at, (&value, &factor)) in values.iter().zip(factors).enumerate() {
        let sum = &mut sums[at % 16];
        *sum = if fused { value.mul_add(factor, *sum) } else { *sum + value * factor };
    }
    for half in [8, 4, 2, 1] {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
    }
    sums[0]
}

#[test]
fn a_dot_product_is_near_the_truth_and_the_same_at_every_address() {
    each_float!(dots());
}

fn dots<E: Float>() {
    let longest = 4100;
    let data = moderate::<E>(longest);
    let mut noise = Noise(3);
    let factors: Vec<f32> =
        (0..longest).map(|_| (noise.next() >> 40) as f32 / (1 << 23) as f32 - 1.0).collect();
    for len in (0..=100).step_by(E::PER_GROUP).chain([1000, longest]) {
        let (data, factors) = (&data[..len * E::DTYPE.bits() as usize / 8], &factors[..len]);
        let mut answers = Vec::new();
        for odd in 0..16 {
            let model = model(E::DTYPE, &[len as u64], data, odd);
            let view = model.tensor("t").unwrap();
            let elements = view.elements::<E>().unwrap();
            answers.push(elements.dot(factors).unwrap());
            answers.push(view.floats().unwrap().dot(factors).unwrap());
            if odd > 0 {
                continue;
            }
            let values: Vec<f32> = elements.iter().map(E::to_f32).collect();
            let orders = [true, false].map(|fused| dot_by_the_text(&values, factors, fused));
            let found = answers[0];
            assert!(
                orders.map(f32::to_bits).contains(&found.to_bits()),
                "{len}: {found}, {orders:?}"
            );

            // Products of f32 are exact in f64, and its own roundings are too small to count. Of
            // f32 there are as many as a sum has products, one more of each product, four of the
            // tree.
            let products =
                || values.iter().zip(factors).map(|(&value, &f)| f64::from(value) * f64::from(f));
            let magnitude: f64 = products().map(f64::abs).sum();
            let roundings = len.div_ceil(16) as f64 + 5.0;
            let bound = magnitude * roundings * 2f64.powi(-24) * 1.001;
            let error = (f64::from(found) - products().sum::<f64>()).abs();
            assert!(error <= bound, "{} of {len}: {error:e} above {bound:e}", E::DTYPE);
        }
        let first = answers[0].to_bits();
        assert!(
            answers.iter().all(|answer| answer.to_bits() == first),
            "{}: {answers:?}",
            E::DTYPE
        );
    }

    // The rows of a matrix are dotted as they would be alone.
    let columns = 20;
    let data = &data[..5 * columns * E::DTYPE.bits() as usize / 8];
    let matrix = model(E::DTYPE, &[5, columns as u64], data, 7);
    let view = matrix.tensor("t").unwrap();
    for (row, alone) in data.chunks(data.len() / 5).enumerate() {
        let alone = model(E::DTYPE, &[columns as u64], alone, 0);
        let expected = alone.tensor("t").unwrap().floats().unwrap().dot(&factors[..columns]);
        for found in [
            view.elements::<E>().unwrap().row(row).unwrap().dot(&factors[..columns]),
            view.floats().unwrap().row(row).unwrap().dot(&factors[..columns]),
        ] {
            assert_eq!(found.unwrap().to_bits(), expected.as_ref().unwrap().to_bits());
        }
    }
}

#[test]
fn a_dot_product_does_not_hide_what_is_no_number() {
    let numbers = [1.0f32, 2.0, f32::INFINITY, 4.0, f32::NAN].map(f32::to_le_bytes);
    for (len, expected) in [(2, 5.0), (3, f32::INFINITY), (4, f32::INFINITY), (5, f32::NAN)] {
        let model = model(Dtype::F32, &[len as u64], &numbers[..len].concat(), 2);
        let factors = &[1.0, 2.0, 3.0, -1.0, 0.0][..len];
        let found = model.tensor("t").unwrap().floats().unwrap().dot(factors).unwrap();
        assert!(found == expected || found.is_nan() && expected.is_nan(), "{len}: {found}");
    }
}

// Wrong lengths.

#[test]
fn a_buffer_of_another_length_is_an_error_and_stays_as_it_was() {
    each_float!(lengths());
}

fn lengths<E: Float>() {
    for shape in [&[2, 4][..], &[12], &[0, 3]] {
        let len = shape.iter().product::<u64>() as usize;
        let data = Noise(9).bytes(len * E::DTYPE.bits() as usize / 8);
        let model = model(E::DTYPE, shape, &data, 1);
        let view = model.tensor("t").unwrap();
        let (elements, floats) = (view.elements::<E>().unwrap(), view.floats().unwrap());
        let part = view.slice(&[]).unwrap();
        for wrong in [0, 1, len.wrapping_sub(1), len + 1, len + E::PER_GROUP, 2 * len, 4 * len + 4]
        {
            if wrong == len || wrong == usize::MAX {
                continue;
            }
            let mut values = vec![E::Value::default(); wrong];
            let mut buffer = vec![-7.5; wrong];
            let mut bytes = vec![0x5a; wrong];
            let mut errors = vec![
                ("read_f32", view.read_f32(&mut buffer)),
                ("read_f32 of elements", elements.read_f32(&mut buffer)),
                ("read_f32 of floats", floats.read_f32(&mut buffer)),
                ("read_f32 of a slice", part.read_f32(&mut buffer)),
                ("read_into", elements.read_into(&mut values)),
                ("dot", elements.dot(&buffer).map(drop)),
                ("dot of floats", floats.dot(&buffer).map(drop)),
            ];
            if part.byte_len() == len {
                errors.push(("copy_to", part.copy_to(&mut bytes)));
            }
            for (way, error) in errors {
                let error = error.expect_err(way);
                let (expected, found) = match *error.kind() {
                    ErrorKind::WrongByteLength { expected, found } if way == "copy_to" => {
                        (expected, found)
                    }
                    ErrorKind::WrongLength { expected, found } if way != "copy_to" => {
                        (expected, found)
                    }
                    _ => panic!("{way}: {error}"),
                };
                assert_eq!((expected, found, error.tensor()), (len, wrong, Some("t")), "{way}");
            }
            assert!(buffer.iter().all(|&value| value == -7.5), "{} {wrong}: {buffer:?}", E::DTYPE);
            assert!(values.iter().all(|&value| value == E::Value::default()), "{wrong}");
            assert!(bytes.iter().all(|&byte| byte == 0x5a), "{wrong}");
        }
    }
}

// Truth values and pairs.

#[test]
fn a_byte_other_than_0_and_1_is_named_and_never_a_bool() {
    for (bytes, first_bad) in [
        (&[][..], None),
        (&[0, 1, 1, 0], None),
        (&[0, 1, 2, 255], Some((2, 2))),
        (&[255, 2], Some((0, 255))),
        (&[1; 300], None),
    ] {
        let model = model(Dtype::Bool, &[bytes.len() as u64], bytes, 1);
        let view = model.tensor("t").unwrap();
        assert_eq!(view.chunks::<1>().unwrap().concat(), bytes);
        truths(view, first_bad);
    }
    // Wherever it stands, and whichever it is.
    for (at, byte) in (0..100).zip((2..=255).step_by(3)).chain([(77_777, 2), (99_999, 0x80)]) {
        let mut bytes: Vec<u8> =
            (0..100_000.min(at + 200)).map(|at| (at % 3 == 0).into()).collect();
        bytes[at] = byte;
        let model = model(Dtype::Bool, &[bytes.len() as u64], &bytes, at % 16);
        truths(model.tensor("t").unwrap(), Some((at, byte)));
    }
}

fn truths(view: TensorView<'_>, first_bad: Option<(usize, u8)>) {
    // A part is of the tensor's dtype only if the whole is: its own bytes may all be good.
    let some = view.slice(&[(..view.len().min(1) as u64).into()]).unwrap();
    let asked = [
        view.bools().map(|bools| bools.to_vec().unwrap()),
        view.elements::<Bool>().map(|bools| bools.iter().collect()),
        view.slice(&[]).unwrap().values::<Bool>().map(Iterator::collect),
        some.values::<Bool>()
            .map(|part| part.chain(view.bytes()[some.len()..].iter().map(|b| *b == 1)).collect()),
    ];
    for answer in asked {
        match (answer, first_bad) {
            (Ok(values), None) => {
                assert!(
                    values.iter().map(|&value| u8::from(value)).eq(view.bytes().iter().copied())
                );
            }
            (Err(error), Some(expected)) => {
                let ErrorKind::NotABool { index, found } = *error.kind() else {
                    panic!("{error}");
                };
                assert_eq!((index, found), expected);
                let text =
                    format!("element {index} is no truth value: expected 0 or 1, found {found}");
                assert!(error.to_string().ends_with(&text), "{error}");
            }
            (answer, _) => panic!("{first_bad:?}: {answer:?}"),
        }
    }
}

#[test]
fn a_complex_number_is_a_pair_with_its_bits_as_they_were() {
    let data = Noise(11).bytes(6 * 8);
    let expected: Vec<[u32; 2]> = data
        .chunks_exact(8)
        .map(|pair| {
            let [re, im] = [&pair[..4], &pair[4..]];
            [re, im].map(|part| u32::from_le_bytes(part.try_into().unwrap()))
        })
        .collect();
    for odd in 0..16 {
        let model = model(Dtype::C64, &[3, 2], &data, odd);
        let view = model.tensor("t").unwrap();
        let pair = |(re, im): (f32, f32)| [re.to_bits(), im.to_bits()];
        agree("C64", one_by_one::<C64, _>(view, pair), &expected);
        match view.as_slice::<[f32; 2]>() {
            Ok(pairs) => {
                assert_eq!(odd % 4, 0);
                assert!(
                    pairs.iter().map(|pair| pair.map(f32::to_bits)).eq(expected.iter().copied())
                );
            }
            Err(error) => match *error.kind() {
                ErrorKind::ForeignByteOrder => {}
                ErrorKind::Misaligned { expected: 4, .. } => assert_ne!(odd % 4, 0),
                _ => panic!("{error}"),
            },
        }
        let error = view.floats().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::WrongDtype { found: Dtype::C64, .. }), "{error}");
    }
}

// Fewer bits.

/// The bits of an F32, of the nearest BF16 and of the nearest F16: ties, what stands beside them,
/// subnormals, the largest and what is beyond, NaN; then numbers out of an urn. Of NumPy and
/// ml_dtypes, but for the NaN: those are quiet and keep the upper bits of their payload.
const OF_F32: &str = "
    00000000 0000 0000  80000000 8000 8000  00000001 0000 0000  80000001 8000 8000
    00007fff 0000 0000  00008000 0000 0000  00008001 0001 0000  80008000 8000 8000
    00017fff 0001 0000  00018000 0002 0000  00018001 0002 0000  007f7fff 007f 0000
    007f8000 0080 0000  007fffff 0080 0000  00800000 0080 0000  00807fff 0080 0000
    00808000 0080 0000  3f800000 3f80 3c00  3f807fff 3f80 3c04  3f808000 3f80 3c04
    3f808001 3f81 3c04  3f817fff 3f81 3c0c  3f818000 3f82 3c0c  3f818001 3f82 3c0c
    bf808000 bf80 bc04  bf818000 bf82 bc0c  3fff7fff 3fff 3ffc  3fff8000 4000 3ffc
    3fffffff 4000 4000  7f7f0000 7f7f 7c00  7f7f7fff 7f7f 7c00  7f7f8000 7f80 7c00
    7f7fffff 7f80 7c00  ff7f7fff ff7f fc00  ff7f8000 ff80 fc00  7f800000 7f80 7c00
    ff800000 ff80 fc00  7f800001 7fc0 7e00  ff800001 ffc0 fe00  7f80ffff 7fc0 7e07
    7fbfffff 7fff 7fff  7fc00000 7fc0 7e00  ffc00000 ffc0 fe00  7fc12345 7fc1 7e09
    ffffffff ffff ffff  7fa0e000 7fe0 7f07  3f800fff 3f80 3c00  3f801000 3f80 3c00
    3f801001 3f80 3c01  3f802fff 3f80 3c01  3f803000 3f80 3c02  3f803001 3f80 3c02
    bf801000 bf80 bc00  bf803000 bf80 bc02  3fffefff 4000 3fff  3ffff000 4000 4000
    477fe000 4780 7bff  477fefff 4780 7bff  477ff000 4780 7c00  477fffff 4780 7c00
    47800000 4780 7c00  47802000 4780 7c00  c780a000 c781 fc00  48002000 4800 7c00
    c77fefff c780 fbff  c77ff000 c780 fc00  7149f2ca 714a 7c00  33800000 3380 0001
    33000000 3300 0000  33000001 3300 0001  32ffffff 3300 0000  33bfffff 33c0 0001
    33c00000 33c0 0002  33c00001 33c0 0002  34200000 3420 0002  34600000 3460 0004
    b3000000 b300 8000  b3c00000 b3c0 8002  387fc000 3880 03ff  387fe000 3880 0400
    387fdfff 3880 03ff  387fefff 3880 0400  387ff000 3880 0400  387fffff 3880 0400
    38800000 3880 0400  38801000 3880 0400  38800fff 3880 0400  33800001 3380 0001
    0da24260 0da2 0000  41583000 4158 4ac2  37c78cd4 37c8 018f  b9158000 b916 88ac
    360e8000 360e 0024  310c14f7 310c 0000  4422f000 4423 6118  713b8000 713c 7c00
    3f77b000 3f78 3bbe  bf699000 bf6a bb4c  b38a42ab b38a 8001  c29bd000 c29c d4de
    b5369335 b537 800b  4564d000 4565 6b26  8b8b8000 8b8c 8000  bf155000 bf15 b8aa
    43897000 4389 5c4c  44a41000 44a4 6520  3f93d8ba 3f94 3c9f  62858000 6286 7c00
    44aaf000 44ab 6558  bf028000 bf02 b814  4355f000 4356 5ab0  c3f98000 c3fa dfcc
    04228000 0422 0000  7bc7b4f2 7bc8 7c00  9a3bd6e9 9a3c 8000  bfdad000 bfdb bed6
    d4b88000 d4b8 fc00  33008000 3300 0001  bc7bb000 bc7c a3de  55c68000 55c6 7c00
    bfad8000 bfae bd6c  bd66f000 bd67 ab38  3ebac18c 3ebb 35d6  471ab000 471b 78d6
    e7e28000 e7e2 fc00  b9828000 b982 8c14  edc08000 edc0 fc00  3f887000 3f88 3c44
    40808000 4080 4404  b7c3586c b7c3 8187  c207f000 c208 d040  ca348000 ca34 fc00
    d8778000 d878 fc00  3f618000 3f62 3b0c  b9438000 b944 8a1c  c17ad000 c17b cbd6
    38a53000 38a5 052a  1d0f8000 1d10 0000  bb563000 bb56 9ab2  b9435000 b943 8a1a
    c49ef000 c49f e4f8  becf8000 bed0 b67c  34748000 3474 0004  efba8000 efba fc00
    c3a8ceb1 c3a9 dd46  352f8000 3530 000b  c1e33000 c1e3 cf1a  a74a8000 a74a 8000
    eb632f0d eb63 fc00  b6faf660 b6fb 807d  b9956057 b995 8cab  cd618000 cd62 fc00";

/// The same of an F64, the nearest by exact fractions. NumPy agrees on all F16. ml_dtypes goes by
/// way of F32 and so rounds twice: of 23 of these it gives the wrong neighbour.
const OF_F64: &str = "
    0000000000000000 0000 0000  8000000000000000 8000 8000  0000000000000001 0000 0000
    8000000000000001 8000 8000  000fffffffffffff 0000 0000  0010000000000000 0000 0000
    3ff00fffffffffff 3f80 3c04  3ff0100000000000 3f80 3c04  3ff0100000000001 3f81 3c04
    3ff02fffffffffff 3f81 3c0c  3ff0300000000000 3f82 3c0c  3ff0300000000001 3f82 3c0c
    3ff001ffffffffff 3f80 3c00  3ff0020000000000 3f80 3c00  3ff0020000000001 3f80 3c01
    3ff005ffffffffff 3f80 3c01  3ff0060000000000 3f80 3c02  3ff0060000000001 3f80 3c02
    3fffefffffffffff 3fff 3ffc  3ffff00000000000 4000 3ffc  3ffff00000000001 4000 3ffc
    3ffffdffffffffff 4000 3fff  3ffffe0000000000 4000 4000  3ffffe0000000001 4000 4000
    378fffffffffffff 0000 0000  3790000000000000 0000 0000  3790000000000001 0001 0000
    37a7ffffffffffff 0001 0000  37a8000000000000 0002 0000  37a8000000000001 0002 0000
    3e5fffffffffffff 3300 0000  3e60000000000000 3300 0000  3e60000000000001 3300 0001
    3e77ffffffffffff 33c0 0001  3e78000000000000 33c0 0002  3e78000000000001 33c0 0002
    3e83ffffffffffff 3420 0002  3e84000000000000 3420 0002  3e84000000000001 3420 0003
    47efefffffffffff 7f7f 7c00  47eff00000000000 7f80 7c00  47eff00000000001 7f80 7c00
    40effdffffffffff 4780 7bff  40effe0000000000 4780 7c00  40effe0000000001 4780 7c00
    380fdfffffffffff 007f 0000  380fe00000000000 0080 0000  380fe00000000001 0080 0000
    3f0ffbffffffffff 3880 03ff  3f0ffc0000000000 3880 0400  3f0ffc0000000001 3880 0400
    46380fffffffffff 71c0 7c00  4638100000000000 71c0 7c00  4638100000000001 71c1 7c00
    40092fffffffffff 4049 424c  4009300000000000 404a 424c  4009300000000001 404a 424c
    3ff0100000001000 3f81 3c04  3ff02ffffffff000 3f81 3c0c  3ff0020000001000 3f80 3c01
    3ff005fffffff000 3f80 3c01  3e60000000400000 3300 0001  3e77ffffffffe800 33c0 0001
    3790000100000000 0001 0000  37a7ffffffa00000 0001 0000  40effdffffffe002 4780 7bff
    47efefffffffe010 7f7f 7c00  bff0100000400000 bf81 bc04  bff005fffff80000 bf80 bc01
    40effc0000000000 4780 7bff  c0effc0000000000 c780 fbff  40effdffae147ae1 4780 7bff
    40f0000000000000 4780 7c00  40f0040000000000 4780 7c00  c0f0140000000000 c781 fc00
    4100040000000000 4800 7c00  47f0200000000000 7f80 7c00  c800600000000000 ff80 fc00
    c0f86a0000000000 c7c3 fc00  48078287f49c4a1d 7f80 7c00  fe37e43c8800759c ff80 fc00
    47efe00000000000 7f7f 7c00  3fb999999999999a 3dcd 2e66  3fd5555555555555 3eab 3555
    400921fb54442d18 4049 4248  c005bf0a8b145769 c02e c170  3ee4f8b588e368f1 3728 00a8
    3e701b2b29a4692b 3381 0001  be701b2b29a4692b b381 8001  3e5fff5c939522db 3300 0000
    37a16c262777579c 0001 0000  b79f5c44ad706a80 8001 8000  379007564d44d5b9 0001 0000
    3696d601ad376ab9 0000 0000  7ff0000000000000 7f80 7c00  fff0000000000000 ff80 fc00
    7ff0000000000001 7fc0 7e00  fff8000000000000 ffc0 fe00  7ff8000000000000 7fc0 7e00
    7fffffffffffffff 7fff 7fff  7ff4a50000000000 7fe5 7f29  fff7ffffffffffff ffff ffff
    7fefffffffffffff 7f80 7c00  4428300000000001 6142 7c00  400a100000000000 4050 4284
    3e4eae988527585c 3275 0000  44c5f00000000000 6630 7c00  3f676ffe34806504 3b3b 19dc
    c57c100000000000 ebe0 fc00  3bc4700000000001 1e24 0000  3f1d300000000000 38ea 074c
    402c0b6a2c1eabfb 4160 4b03  40041e0000000000 4021 4108  403cda0000000000 41e7 4f36
    bf0d500000000000 b86a 83aa  3f1b3a0000000000 38da 06ce  bff0100000000001 bf81 bc04
    bff5a60000000000 bfad bd6a  c497100000000001 e4b9 fc00  bea5300000000000 b52a 800b
    c0023ed36f29432a c012 c090  3d54700000000000 2aa4 0000  3e59100000000001 32c9 0000
    3f66020000000000 3b30 1980  3f98be0000000000 3cc6 2630  40914a0000000000 448a 6452
    bee4f00000000000 b728 80a8  3fb78a0000000000 3dbc 2de2  c75dbad9e857a97a faee fc00
    3c24900000000001 2125 0000  3c7d1a44ef4b996b 23e9 0000  3fe1da0000000000 3f0f 3876
    401135b47a5b2f36 408a 444d  4044660000000000 4223 511a  bf11900000000000 b88c 8464
    407f900000000001 43fd 5fe4  407e300000000001 43f2 5f8c  3a6c76b06b06b9b5 1364 0000
    3e14500000000001 30a3 0000  c228d567477d6380 d147 fc00  bec3105bbcd9f61c b619 8026
    be78f00000000000 b3c8 8002  40ebf00000000001 4760 7afc  3d7cf00000000000 2be8 0000
    40e5bc56850dcbc8 472e 796f  3ff4500000000001 3fa3 3d14  407fe60000000000 43ff 5ffa
    c1c4500000000001 ce23 fc00  c04fb00000000001 c27e d3ec  3a5feff41da9a93f 12ff 0000
    402a160000000000 4151 4a86  45a9b00000000001 6d4e 7c00";

/// Rows of three numbers.
fn triples(table: &str) -> Vec<[u64; 3]> {
    let numbers: Vec<u64> =
        table.split_whitespace().map(|bits| u64::from_str_radix(bits, 16).unwrap()).collect();
    assert_eq!(numbers.len(), 3 * 152);
    numbers.chunks_exact(3).map(|row| row.try_into().unwrap()).collect()
}

#[test]
fn an_f32_becomes_the_nearest_number_of_16_bits() {
    for [bits, bf16, f16] in triples(OF_F32) {
        let number = f32::from_bits(bits as u32);
        let found = [Bf16::from_f32(number).0, F16::from_f32(number).0].map(u64::from);
        assert_eq!(found, [bf16, f16], "{bits:08x} is {number:e}");
        // Of all F64 that mean the same, also the one that a machine makes.
        if !number.is_nan() {
            let number = f64::from(number);
            let found = [Bf16::from_f64(number).0, F16::from_f64(number).0].map(u64::from);
            assert_eq!(found, [bf16, f16], "{bits:08x} by way of {number:e}");
        }
    }
}

#[test]
fn an_f64_becomes_the_nearest_number_of_16_bits_and_is_rounded_once() {
    let mut twice = 0;
    for [bits, bf16, f16] in triples(OF_F64) {
        let number = f64::from_bits(bits);
        let found = [Bf16::from_f64(number).0, F16::from_f64(number).0].map(u64::from);
        assert_eq!(found, [bf16, f16], "{bits:016x} is {number:e}");
        twice += usize::from(u64::from(Bf16::from_f32(number as f32).0) != bf16);
    }
    assert!(twice >= 23, "{twice} of these can tell one rounding from two");
}

/// What is a number of 16 bits already is not changed, and a NaN becomes quiet.
#[test]
fn what_has_16_bits_comes_back() {
    for bits in 0..=u16::MAX {
        for (back, number, quiet) in [
            (Bf16::from_f32(Bf16(bits).to_f32()).0, Bf16(bits).to_f32(), 0x40),
            (Bf16::from_f64(Bf16(bits).to_f32().into()).0, Bf16(bits).to_f32(), 0x40),
            (F16::from_f32(F16(bits).to_f32()).0, F16(bits).to_f32(), 0x200),
            (F16::from_f64(F16(bits).to_f32().into()).0, F16(bits).to_f32(), 0x200),
        ] {
            assert_eq!(back, if number.is_nan() { bits | quiet } else { bits }, "{bits:04x}");
            assert_eq!(f32::from(Bf16(bits)).to_bits(), Bf16(bits).to_f32().to_bits());
            assert_eq!(f32::from(F16(bits)).to_bits(), F16(bits).to_f32().to_bits());
        }
    }
}
