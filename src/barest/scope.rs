//! What does an engine ask for on every line, and what did it forget?
//!
//! ```text
//!   model.scope("model.layers.3")        names below a prefix, as an engine's modules nest
//!        .scope("self_attn")
//!        .expect("q_proj.weight", Dtype::Bf16, &[576, 576])?
//!   Checklist::new(&model)               the same questions, remembered: a weight that nobody asked
//!                                        for is a layer that was left out
//! ```

use super::dtype::Dtype;
use super::error::{Error, ErrorKind, Result};
use super::escape::{Brief, Shape};
use super::model::Model;
use super::tensor::TensorView;
use std::borrow::Cow;
use std::fmt::{self, Debug, Formatter};
use std::sync::atomic::{AtomicBool, Ordering};

/// The tensors of a model whose names begin with a prefix and a dot.
#[derive(Clone)]
pub struct Scope<'a> {
    model: &'a Model,
    checklist: Option<&'a Checklist>,
    prefix: String,
}

impl Model {
    /// The names below a prefix: in `scope("model.layers.3")`, `norm.weight` means
    /// `model.layers.3.norm.weight`. That there are any is not checked. An empty prefix is the whole
    /// model.
    pub fn scope(&self, prefix: &str) -> Scope<'_> {
        Scope { model: self, checklist: None, prefix: prefix.to_owned() }
    }

    /// The tensor of that name, if it has this dtype and this shape. `None` takes any dtype.
    ///
    /// Fails with [`NotFound`](ErrorKind::NotFound), and with
    /// [`NotAsExpected`](ErrorKind::NotAsExpected), which says what was expected and what was found.
    pub fn expect(
        &self,
        name: &str,
        dtype: impl Into<Option<Dtype>>,
        shape: &[u64],
    ) -> Result<TensorView<'_>> {
        as_expected(self.tensor(name)?, dtype.into(), shape)
    }
}

impl<'a> Scope<'a> {
    /// The names below this prefix and another; an empty one adds nothing.
    pub fn scope(&self, prefix: &str) -> Scope<'a> {
        let prefix = match prefix {
            "" => self.prefix.clone(),
            prefix => self.full_name(prefix).into_owned(),
        };
        Scope { prefix, ..*self }
    }

    /// The prefix, without the dot behind it.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// [`Model::tensor`] of the prefix, a dot, and `name`. Allocates the whole name.
    pub fn tensor(&self, name: &str) -> Result<TensorView<'a>> {
        let name = self.full_name(name);
        self.find(&name).ok_or_else(|| self.model.not_found(&name))
    }

    /// [`Model::get`] of the prefix, a dot, and `name`. Allocates the whole name.
    pub fn get(&self, name: &str) -> Option<TensorView<'a>> {
        self.find(&self.full_name(name))
    }

    /// [`Model::expect`] of the prefix, a dot, and `name`. Allocates the whole name.
    pub fn expect(
        &self,
        name: &str,
        dtype: impl Into<Option<Dtype>>,
        shape: &[u64],
    ) -> Result<TensorView<'a>> {
        as_expected(self.tensor(name)?, dtype.into(), shape)
    }

    /// All tensors below the prefix, shard by shard in file order. Looks at the names of the whole
    /// model; a checklist does not count them as asked for.
    pub fn tensors(&self) -> impl Iterator<Item = TensorView<'a>> + '_ {
        self.model.tensors().filter(|tensor| is_below(tensor.name(), &self.prefix))
    }

    fn full_name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        match self.prefix.is_empty() {
            true => Cow::Borrowed(name),
            false => Cow::Owned(format!("{}.{name}", self.prefix)),
        }
    }

    fn find(&self, name: &str) -> Option<TensorView<'a>> {
        let position = self.model.position(name)?;
        if let Some(checklist) = self.checklist {
            checklist.asked[position].store(true, Ordering::Relaxed);
        }
        Some(self.model.at(position))
    }
}

impl Debug for Scope<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Scope({})", Brief(&self.prefix))
    }
}

/// Whether a name is the prefix, a dot, and more. All names are below an empty prefix.
pub fn is_below(name: &str, prefix: &str) -> bool {
    prefix.is_empty() || name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'))
}

fn as_expected<'a>(
    tensor: TensorView<'a>,
    dtype: Option<Dtype>,
    shape: &[u64],
) -> Result<TensorView<'a>> {
    if tensor.shape() == shape && dtype.is_none_or(|dtype| dtype == tensor.dtype()) {
        return Ok(tensor);
    }
    let expected = match dtype {
        Some(dtype) => format!("{dtype} {}", Shape(shape)),
        None => format!("any dtype, {}", Shape(shape)),
    };
    let found = format!("{} {}", tensor.dtype(), Shape(tensor.shape()));
    Err(tensor.error(ErrorKind::NotAsExpected { expected, found }))
}

/// Remembers which tensors were asked for through it. Can be shared among threads.
pub struct Checklist {
    model: Model,
    /// One for each position in the model's order.
    asked: Vec<AtomicBool>,
}

impl Checklist {
    /// For a model, of which nothing was asked yet. One byte is allocated for each tensor.
    pub fn new(model: &Model) -> Checklist {
        let asked = (0..model.len()).map(|_| AtomicBool::new(false)).collect();
        Checklist { model: model.clone(), asked }
    }

    /// The names below a prefix; what is found among them counts as asked for.
    pub fn scope(&self, prefix: &str) -> Scope<'_> {
        Scope { model: &self.model, checklist: Some(self), prefix: prefix.to_owned() }
    }

    /// [`Model::tensor`], remembered if it is found.
    pub fn tensor(&self, name: &str) -> Result<TensorView<'_>> {
        self.scope("").tensor(name)
    }

    /// [`Model::get`], remembered if it is found.
    pub fn get(&self, name: &str) -> Option<TensorView<'_>> {
        self.scope("").get(name)
    }

    /// [`Model::expect`], remembered if a tensor of that name is found.
    pub fn expect(
        &self,
        name: &str,
        dtype: impl Into<Option<Dtype>>,
        shape: &[u64],
    ) -> Result<TensorView<'_>> {
        self.scope("").expect(name, dtype, shape)
    }

    /// The tensors that nobody asked for so far, shard by shard in file order.
    pub fn never_asked_for(&self) -> impl Iterator<Item = TensorView<'_>> {
        let never = |asked: &AtomicBool| !asked.load(Ordering::Relaxed);
        self.model.tensors().zip(&self.asked).filter(move |(_, asked)| never(asked)).map(|(t, _)| t)
    }

    /// Fails with [`NeverAskedFor`](ErrorKind::NeverAskedFor) if there are any.
    pub fn finish(&self) -> Result<()> {
        const SHOWN: usize = 3;
        let tensors = self.never_asked_for().count();
        if tensors == 0 {
            return Ok(());
        }
        let shown = self.never_asked_for().take(SHOWN);
        let mut names: Vec<String> = shown.map(|t| format!("`{}`", Brief(t.name()))).collect();
        if tensors > SHOWN {
            names.push("…".to_owned());
        }
        let names = names.join(", ");
        Err(self.model.error(Error::new(ErrorKind::NeverAskedFor { tensors, names })))
    }
}

impl Debug for Checklist {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Checklist({} of {} left)", self.never_asked_for().count(), self.model.len())
    }
}
