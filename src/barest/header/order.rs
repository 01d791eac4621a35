//! In which order do the tensors lie in the file?
//!
//! Mostly in that of the header, and then nothing is to be done. Otherwise each goes to a bucket by
//! the upper bits of its offset, as many buckets as tensors, and the buckets are sorted one by one:
//! of a file that tiles its data evenly, most hold one tensor or two. Sorting all at once would compare
//! each with `log2(n)` others; a file whose tensors all lie in one bucket costs that much.

use super::super::error::Result;
use super::super::error::reserve::{vector, zeros};
use super::Record;

/// Puts the records into the order of their offsets; those that the header already lists in order
/// stay as they are, and the answer is true. Of empty tensors at one place the header's order is kept.
pub fn sort(records: &mut Vec<Record>) -> Result<bool> {
    if records.is_sorted_by_key(|record| (record.begin, record.end)) {
        return Ok(true);
    }
    // 1. How many tensors each bucket gets, and with that where each begins. There are two tensors at
    //    least, for fewer are in order, and no more buckets than tensors.
    let last = records.iter().map(|record| record.begin).max().unwrap_or(0);
    let bits = u64::BITS - last.leading_zeros();
    let shift = bits.saturating_sub(records.len().ilog2());
    let bucket = |record: &Record| (record.begin >> shift) as usize;
    let mut buckets: Vec<u32> = zeros((last >> shift) as usize + 1)?;
    for record in &*records {
        buckets[bucket(record)] += 1;
    }
    let mut sum = 0;
    for count in &mut buckets {
        sum += *count;
        *count = sum - *count;
    }
    // 2. Each into its bucket, which afterwards begins where the next one does.
    let mut keys: Vec<Key> = zeros(records.len())?;
    for (number, record) in (0..).zip(&*records) {
        let next = &mut buckets[bucket(record)];
        keys[*next as usize] = key(record, number);
        *next += 1;
    }
    // 3. Each bucket by itself.
    let mut start = 0;
    for &end in &buckets {
        keys[start..end as usize].sort_unstable();
        start = end as usize;
    }
    // 4. Into new memory: in place, along the cycles of the permutation, each record would have to wait
    //    for the one before it to arrive.
    let mut sorted = vector(records.len())?;
    sorted.extend(keys.iter().map(|&key| records[number_of(key)]));
    *records = sorted;
    Ok(false)
}

/// A record's place in the order. Keys of 16 bytes move faster than records of 40; with the number in
/// them no two are equal, so that the order is stable.
///
/// ```text
///   127        96 95            32   31    30       0
///   [     0      |  data offset  | data? |  number  ]    an empty tensor before its neighbour
/// ```
type Key = u128;

/// A header, whose length has 32 bits, has less than 2^31 entries.
const HAS_DATA: u32 = 1 << 31;

fn key(record: &Record, number: u32) -> Key {
    let has_data = if record.end == record.begin { 0 } else { HAS_DATA };
    Key::from(record.begin) << 32 | Key::from(has_data | number)
}

fn number_of(key: Key) -> usize {
    (key as u32 & !HAS_DATA) as usize
}

#[cfg(test)]
mod tests {
    use super::super::super::dtype::Dtype;
    use super::super::shapes::Dims;
    use super::*;

    fn record(begin: u64, end: u64, number: u32) -> Record {
        Record {
            begin,
            end,
            name_start: number,
            name_len: 0,
            dims: Dims::default(),
            hash: 0,
            dtype: Dtype::U8,
            name_is_resolved: false,
        }
    }

    /// The same as sorting all at once, for offsets that fill buckets evenly and for those that do not.
    #[test]
    fn tensors_are_in_the_order_of_their_offsets_and_empty_ones_in_that_of_the_header() {
        let scattered = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let offsets: [fn(u64) -> u64; 8] = [
            |number| number % 100 * 64,
            |number| (number % 100).pow(9),
            |number| 1 << (number % 64),
            |number| u64::MAX - number % 50,
            |number| if number == 0 { u64::MAX } else { number % 7 },
            |_| 5,
            |_| 0,
            |number| number,
        ];
        for offset in offsets {
            for count in [2, 3, 64, 65, 300] {
                let mut records: Vec<Record> = (0..count)
                    .map(|number| {
                        let begin = offset(scattered(u64::from(number)) >> 40);
                        let len = u64::from(number % 3).min(u64::MAX - begin);
                        record(begin, begin + len, number)
                    })
                    .collect();
                let mut expected = records.clone();
                expected.sort_by_key(|record| (record.begin, record.end > record.begin));
                let numbers =
                    |records: &[Record]| records.iter().map(|r| r.name_start).collect::<Vec<_>>();
                let in_order = records.is_sorted_by_key(|record| (record.begin, record.end));
                assert_eq!(sort(&mut records).unwrap(), in_order);
                if !in_order {
                    assert_eq!(numbers(&records), numbers(&expected), "{count}");
                }
            }
        }
    }
}
