//! Does a prefix mean what it says, and is what nobody asked for found?

use crate::files::{Folder, safetensors};
use barest::{Checklist, Dtype, ErrorKind, Model};
use std::thread;

const NAMES: [&str; 9] = [
    "model.layers.3.mlp.weight",
    "model.layers.3.norm",
    "model.layers.30.norm",
    "model.layers.3",
    "model.layer.norm",
    "model.layers.3..odd",
    "lm_head",
    ".dot",
    "",
];

/// Two shards, in the order of [`NAMES`]; each tensor is F16 [2,3].
fn model() -> Model {
    let folder = Folder::new();
    for (number, names) in NAMES.chunks(5).enumerate() {
        let entry = |(number, name): (usize, &&str)| {
            let (begin, end) = (12 * number, 12 * number + 12);
            format!(r#""{name}":{{"dtype":"F16","shape":[2,3],"data_offsets":[{begin},{end}]}}"#)
        };
        let entries: Vec<String> = names.iter().enumerate().map(entry).collect();
        let data = vec![0; 12 * names.len()];
        let model = safetensors(&format!("{{{}}}", entries.join(",")), &data);
        folder.file(&format!("{number}.safetensors"), model);
    }
    Model::read(&folder.0).unwrap()
}

fn below(model: &Model, prefix: &str) -> Vec<String> {
    model.scope(prefix).tensors().map(|view| view.name().to_owned()).collect()
}

#[test]
fn a_prefix_ends_at_a_dot() {
    let model = model();
    let layer_3 = ["model.layers.3.mlp.weight", "model.layers.3.norm", "model.layers.3..odd"];
    assert_eq!(below(&model, "model.layers.3"), layer_3);
    assert_eq!(below(&model, "model.layer"), ["model.layer.norm"]);
    assert_eq!(below(&model, "model.layers.3.norm"), [""; 0]);
    assert_eq!(below(&model, "lm_head"), [""; 0]);
    assert_eq!(below(&model, "model.layers.3."), ["model.layers.3..odd"]);
    assert_eq!(below(&model, "model").len(), 6);
    assert_eq!(below(&model, ""), NAMES);
    assert_eq!(below(&model, "nothing"), [""; 0]);
}

#[test]
fn a_name_in_a_scope_is_the_prefix_a_dot_and_the_name() {
    let model = model();
    let layer = model.scope("model.layers.3");
    assert_eq!(layer.prefix(), "model.layers.3");
    assert_eq!(layer.tensor("norm").unwrap().name(), "model.layers.3.norm");
    assert_eq!(layer.get("mlp.weight").unwrap().name(), "model.layers.3.mlp.weight");
    assert_eq!(layer.get(".odd").unwrap().name(), "model.layers.3..odd");
    for name in ["", "layers.3.norm", "model.layers.3.norm", "0.norm", ".norm"] {
        assert!(layer.get(name).is_none(), "{name}");
    }
    // Nested, in any steps.
    let model_scope = model.scope("model");
    let nested = model_scope.scope("layers").scope("3");
    assert_eq!(nested.prefix(), "model.layers.3");
    assert_eq!(nested.scope("mlp").tensor("weight").unwrap().name(), "model.layers.3.mlp.weight");
    // What is taken from a scope outlives it, and the scope the one it was made from.
    let view = model.scope("model").scope("layers.3").tensor("norm").unwrap();
    assert_eq!(view.name(), "model.layers.3.norm");
}

#[test]
fn an_empty_prefix_adds_nothing() {
    let model = model();
    let whole = model.scope("");
    for name in NAMES {
        assert_eq!(whole.tensor(name).unwrap().name(), name);
    }
    assert_eq!(whole.scope("model.layers").scope("3").get("norm").unwrap().name(), NAMES[1]);
    let layer = model.scope("model.layers.3");
    assert_eq!(layer.scope("").prefix(), "model.layers.3");
    assert_eq!(layer.scope("").get("norm").unwrap().name(), NAMES[1]);
    assert_eq!(layer.scope("").tensors().count(), 3);
}

#[test]
fn what_is_not_there_is_told_with_its_whole_name_and_the_nearest() {
    let model = model();
    for error in [
        model.scope("model.layers.3").tensor("nrm").unwrap_err(),
        model.scope("model").expect("layers.3.nrm", Dtype::F16, &[2, 3]).unwrap_err(),
        model.expect("model.layers.3.nrm", None, &[2, 3]).unwrap_err(),
        Checklist::new(&model).scope("model.layers.3").tensor("nrm").unwrap_err(),
    ] {
        let ErrorKind::NotFound { nearest, among: 9 } = error.kind() else { panic!("{error}") };
        assert_eq!(nearest.as_deref(), Some("model.layers.3.norm"));
        assert_eq!(error.tensor(), Some("model.layers.3.nrm"));
        assert!(error.to_string().contains("the nearest name is `model.layers.3.norm`"));
    }
}

#[test]
fn what_is_not_as_expected_says_what_was_and_what_is() {
    let model = model();
    let scope = model.scope("model.layers.3");
    let found = scope.expect("norm", Dtype::F16, &[2, 3]).unwrap();
    assert_eq!(found.name(), "model.layers.3.norm");
    assert!(scope.expect("norm", None, &[2, 3]).is_ok());
    assert!(model.expect("lm_head", Some(Dtype::F16), &[2, 3]).is_ok());
    for (dtype, shape, told) in [
        (Some(Dtype::Bf16), &[2, 3][..], "expected BF16 [2,3], found F16 [2,3]"),
        (Some(Dtype::F16), &[3, 2], "expected F16 [3,2], found F16 [2,3]"),
        (Some(Dtype::F16), &[6], "expected F16 [6], found F16 [2,3]"),
        (Some(Dtype::F16), &[2, 3, 1], "expected F16 [2,3,1], found F16 [2,3]"),
        (None, &[], "expected any dtype, [], found F16 [2,3]"),
    ] {
        let checklist = Checklist::new(&model);
        for error in [
            scope.expect("norm", dtype, shape).unwrap_err(),
            model.expect("model.layers.3.norm", dtype, shape).unwrap_err(),
            checklist.scope("model.layers").expect("3.norm", dtype, shape).unwrap_err(),
        ] {
            let ErrorKind::NotAsExpected { expected, found } = error.kind() else {
                panic!("{error}")
            };
            assert_eq!(format!("expected {expected}, found {found}"), told);
            let path = error.path().unwrap();
            assert_eq!(path.file_name().unwrap(), "0.safetensors");
            let line = format!("{}: tensor `model.layers.3.norm`: {told}", path.display());
            assert_eq!(error.to_string(), line);
        }
        // It was asked for all the same.
        assert_eq!(checklist.never_asked_for().count(), 8);
    }
}

fn left(checklist: &Checklist) -> Vec<&str> {
    checklist.never_asked_for().map(|view| view.name()).collect()
}

#[test]
fn a_checklist_remembers_what_was_found_and_nothing_else() {
    let model = model();
    let checklist = Checklist::new(&model);
    assert_eq!(left(&checklist), NAMES);
    let error = checklist.finish().unwrap_err();
    let told = "9 tensors never asked for: `model.layers.3.mlp.weight`, `model.layers.3.norm`, `model.layers.30.norm`, …";
    assert_eq!(error.to_string(), format!("{}: {told}", error.path().unwrap().display()));

    assert!(checklist.get("no").is_none() && checklist.tensor("model").is_err());
    // Looking at the list asks for none, and neither does the model itself.
    assert_eq!(checklist.scope("").tensors().count(), 9);
    model.tensor("lm_head").unwrap();
    assert_eq!(left(&checklist).len(), 9);

    checklist.tensor("lm_head").unwrap();
    checklist.get("").unwrap();
    checklist.scope("model").scope("layers.3").get("norm").unwrap();
    checklist.expect(".dot", Dtype::F16, &[2, 3]).unwrap();
    checklist.expect("model.layer.norm", Dtype::F32, &[2, 3]).unwrap_err();
    let rest = [NAMES[0], NAMES[2], NAMES[3], NAMES[5]];
    assert_eq!(left(&checklist), rest);
    checklist.tensor(NAMES[2]).unwrap();
    let told = "3 tensors never asked for: `model.layers.3.mlp.weight`, `model.layers.3`, `model.layers.3..odd`";
    assert!(checklist.finish().unwrap_err().to_string().ends_with(told));
    checklist.tensor(NAMES[3]).unwrap();
    checklist.tensor(NAMES[5]).unwrap();
    let error = checklist.finish().unwrap_err();
    assert!(error.to_string().ends_with(": 1 tensor never asked for: `model.layers.3.mlp.weight`"));
    assert!(matches!(error.kind(), ErrorKind::NeverAskedFor { tensors: 1, .. }));
    checklist.tensor(NAMES[0]).unwrap();
    checklist.finish().unwrap();
    assert_eq!(left(&checklist), [""; 0]);
    // Another one knows nothing of it.
    assert_eq!(left(&Checklist::new(&model)).len(), 9);
}

#[test]
fn threads_share_a_checklist() {
    let model = model();
    let checklist = Checklist::new(&model);
    thread::scope(|scope| {
        for thread in 0..4 {
            let checklist = &checklist;
            scope.spawn(move || {
                for name in NAMES.iter().skip(thread).step_by(4) {
                    checklist.tensor(name).unwrap();
                }
            });
        }
    });
    checklist.finish().unwrap();
    fn shared<T: Send + Sync>() {}
    shared::<Checklist>();
    shared::<barest::Scope<'_>>();
}

#[test]
fn a_model_without_tensors_leaves_nothing_unasked() {
    let model = Model::from_bytes(&safetensors("{}", b"")).unwrap();
    Checklist::new(&model).finish().unwrap();
    assert_eq!(model.scope("").tensors().count(), 0);
}
