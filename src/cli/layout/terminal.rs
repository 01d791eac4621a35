//! How is the picture drawn with letters?

use super::super::output::Output;
use super::super::table::Table;
use super::excerpt::{self, Excerpt, excerpt};
use super::picture::{Picture, hex, letter, plural, share};
use super::scale::Scale;
use std::io::{self, Write};

pub fn draw(picture: &Picture<'_>, output: &mut Output) -> io::Result<()> {
    let columns = output.columns().unwrap_or(80);
    writeln!(output, "{}: {} bytes\n", picture.name, picture.file_len())?;
    regions(picture, columns, output)?;
    sum(picture, output)?;
    file_to_scale(picture, columns, output)?;
    tensors_to_scale(picture, columns, output)?;
    misplaced(picture, output)
}

/// Writes lines behind an offset and a name, which the first line has.
struct Rows {
    digits: usize,
}

impl Rows {
    const NAME: usize = "length word".len();

    fn indent(&self) -> usize {
        self.digits + 2 + Rows::NAME + 2
    }

    fn write(&self, at: u64, name: &str, lines: &[String], output: &mut Output) -> io::Result<()> {
        let (digits, width) = (self.digits, Rows::NAME);
        for (number, line) in lines.iter().enumerate() {
            match number {
                0 => writeln!(output, "{at:>digits$}  {name:<width$}  {line}")?,
                _ => writeln!(output, "{:>indent$}{line}", "", indent = self.indent())?,
            }
        }
        Ok(())
    }
}

fn regions(picture: &Picture<'_>, columns: usize, output: &mut Output) -> io::Result<()> {
    const NARROWEST: usize = 16;
    let rows = Rows { digits: picture.file_len().to_string().len() };
    let [word, header, padding, tensors] = picture.regions();
    // 1. The length word.
    let n = picture.header.header_len();
    let lines = [hex(&picture.word()), format!("little-endian: N = {n:#x} = {n}")];
    rows.write(word.range.start, word.name, &lines, output)?;
    // 2. The header.
    let room = columns.saturating_sub(rows.indent()).max(NARROWEST);
    let Excerpt { first, hidden, last } = excerpt(picture.text(), room);
    let mut lines = first;
    if hidden > 0 {
        lines.push(format!("… {} …", plural(hidden as u64, "byte")));
    }
    lines.extend(last);
    match picture.blanks_in_front() {
        0 => {}
        blanks => {
            lines.push(format!("({} of white space in front)", plural(blanks as u64, "byte")))
        }
    }
    rows.write(header.range.start, header.name, &lines, output)?;
    // 3. The padding.
    let lines = match picture.padding() {
        [] => vec!["none".to_owned(), picture.multiple_of_8()],
        bytes => {
            let blanks = plural(bytes.len() as u64, "byte");
            let told = format!("{blanks} of white space, counted in N");
            vec![hex(bytes), told, picture.multiple_of_8()]
        }
    };
    rows.write(padding.range.start, padding.name, &lines, output)?;
    // 4. The tensors.
    let bytes = plural(picture.header.data_len(), "byte");
    let mut lines = vec![match picture.tensors.len() {
        0 => "none".to_owned(),
        all => format!("{all} in {bytes}, each begins where the one before it ends"),
    }];
    if picture.empty > 0 {
        lines.push(format!("{} of them empty", picture.empty));
    }
    lines.extend(picture.last().into_iter().flatten());
    rows.write(tensors.range.start, tensors.name, &lines, output)?;
    rows.write(tensors.range.end, "end", &["of the file".to_owned()], output)
}

/// The sum, with the names of its parts above the numbers.
fn sum(picture: &Picture<'_>, output: &mut Output) -> io::Result<()> {
    let header = picture.header;
    let parts = [
        ("8", "8".to_owned(), " + "),
        ("N", header.header_len().to_string(), " + "),
        ("last end", header.data_len().to_string(), " = "),
        ("file size", picture.file_len().to_string(), ""),
    ];
    let (mut names, mut numbers) = (String::new(), String::new());
    for (name, number, sign) in parts {
        let width = name.len().max(number.len());
        names += &format!("{name:>width$}{sign}");
        numbers += &format!("{number:>width$}{sign}");
    }
    writeln!(output, "\n{names}\n{numbers}\n")
}

fn file_to_scale(picture: &Picture<'_>, columns: usize, output: &mut Output) -> io::Result<()> {
    const SIGNS: [char; 4] = ['L', 'H', 'p', 'T'];
    let scale = Scale { bytes: picture.file_len(), columns };
    let regions = picture.regions();
    let bar = scale.fill(regions.iter().map(|region| region.range.clone()));
    writeln!(output, "The file to scale; a column is {}:", column(&scale))?;
    writeln!(output, "{}", signs(&bar, |region| SIGNS[region]))?;
    let mut drawn = Vec::new();
    let mut too_thin = Vec::new();
    for (number, region) in regions.iter().enumerate() {
        let part = share(region.range.end - region.range.start, picture.file_len());
        match bar.contains(&Some(number)) {
            true => drawn.push(format!("{} {} {part}", SIGNS[number], region.name)),
            false if region.range.is_empty() => {}
            false => too_thin.push(format!("{} {part}", region.name)),
        }
    }
    writeln!(output, "{}", drawn.join(", "))?;
    if !too_thin.is_empty() {
        writeln!(output, "too thin to be drawn: {}", too_thin.join(", "))?;
    }
    writeln!(output)
}

fn tensors_to_scale(picture: &Picture<'_>, columns: usize, output: &mut Output) -> io::Result<()> {
    if picture.tensors.is_empty() {
        return Ok(());
    }
    let (data_start, data_len) = (picture.header.data_start(), picture.header.data_len());
    // 1. The bar, and below it how many tensors begin in each column.
    if data_len > 0 {
        let scale = Scale { bytes: data_len, columns };
        let ranges = picture.runs.iter().map(|run| &run.range);
        let bar = scale.fill(ranges.map(|range| range.start - data_start..range.end - data_start));
        let begins = scale.count(picture.full().map(|tensor| tensor.data_offsets().0));
        writeln!(output, "The tensors to scale; a column is {}:", column(&scale))?;
        writeln!(output, "{}", signs(&bar, letter))?;
        writeln!(output, "{}", begins.into_iter().map(digit).collect::<String>())?;
        writeln!(output, "below the letters: how many tensors begin there, + for ten and more")?;
        let too_thin = picture
            .runs
            .iter()
            .enumerate()
            .filter(|(number, run)| !run.range.is_empty() && !bar.contains(&Some(*number)));
        let too_thin: Vec<String> =
            too_thin.map(|(number, _)| letter(number).to_string()).collect();
        if !too_thin.is_empty() {
            writeln!(output, "too thin to be drawn: {}", too_thin.join(", "))?;
        }
    } else {
        writeln!(output, "The tensors; all are empty:")?;
    }
    writeln!(output, "{}\n", picture.how_joined())?;
    // 2. The runs.
    const LONGEST_NAME: usize = 48;
    let joined = picture.runs.len() < picture.tensors.len();
    let title = if joined { "   LARGEST TENSOR" } else { "   TENSOR" };
    let table = match joined {
        true => Table::new(&[title, ">MORE", ">FROM", ">BYTES", ">SHARE"]),
        false => Table::new(&[title, ">FROM", ">BYTES", ">SHARE"]),
    }
    .giving_way(&["FROM", "SHARE"]);
    let rows = picture.runs.iter().enumerate().map(|(number, run)| {
        let bytes = run.range.end - run.range.start;
        let name = excerpt::name(run.largest.name(), LONGEST_NAME);
        let mut cells = vec![format!("{}  {name}", letter(number))];
        if joined {
            let more = run.tensors - 1;
            cells.push(if more > 0 { format!("+{more}") } else { String::new() });
        }
        cells.extend([run.range.start.to_string(), bytes.to_string()]);
        cells.push(share(bytes, data_len.max(1)));
        cells
    });
    table.write(rows, output)?;
    writeln!(output)
}

fn misplaced(picture: &Picture<'_>, output: &mut Output) -> io::Result<()> {
    let all = picture.tensors.len() - picture.empty;
    if all == 0 {
        return Ok(());
    }
    writeln!(output, "Tensors that start at a file offset that is not a multiple of")?;
    let digits = all.to_string().len();
    for row in &picture.misplaced {
        writeln!(output, "  {:>digits$} of {all}  {}", row.tensors, row.of)?;
    }
    Ok(())
}

fn signs(bar: &[Option<usize>], sign: impl Fn(usize) -> char) -> String {
    bar.iter().map(|piece| piece.map_or(' ', &sign)).collect()
}

fn digit(count: usize) -> char {
    match count {
        0 => '.',
        1..=9 => (b'0' + count as u8) as char,
        _ => '+',
    }
}

/// What a column of a bar stands for.
fn column(scale: &Scale) -> String {
    let columns = scale.columns as u64;
    match scale.bytes % columns {
        0 => plural(scale.bytes / columns, "byte"),
        _ => format!("{:.1} bytes", scale.bytes as f64 / columns as f64),
    }
}
