//! Holds the generated code against a table of the contract that is kept by hand.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;

use harness_proto::FILE_DESCRIPTOR_SET;
use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    ServiceDescriptorProto,
};

const TABLE: &str = include_str!("wire_table.txt");

fn own_files() -> Vec<FileDescriptorProto> {
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).expect("the descriptor set decodes");
    set.file.into_iter().filter(|file| file.package() != "google.protobuf").collect()
}

/// Every entry of the table joined with its heading, so that a line says by itself where it belongs.
fn table() -> Vec<String> {
    let mut heading = "";
    let mut lines = Vec::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        match line.strip_prefix("  ") {
            Some(entry) => lines.push(format!("{heading} | {entry}")),
            None => {
                heading = line;
                lines.push(line.to_owned());
            }
        }
    }
    lines
}

/// The same lines, made from the descriptors.
fn built() -> Vec<String> {
    let mut lines = Vec::new();
    for file in own_files() {
        assert_eq!(file.syntax(), "proto3", "{}", file.name());
        let package = short(file.package());
        file.message_type.iter().for_each(|message| describe_message(&package, message, &mut lines));
        file.enum_type.iter().for_each(|values| describe_enum(&package, values, &mut lines));
        file.service.iter().for_each(|service| describe_service(&package, service, &mut lines));
    }
    lines
}

fn describe_message(scope: &str, message: &DescriptorProto, lines: &mut Vec<String>) {
    let name = format!("{scope}.{}", message.name());
    let heading = format!("message {name}");
    for field in &message.field {
        lines.push(format!("{heading} | {} {}: {}", field.number(), field.name(), shape(field, message)));
    }
    for range in &message.reserved_range {
        assert_eq!(range.end(), range.start() + 1, "{name} reserves one number at a time");
        lines.push(format!("{heading} | {} reserved {}", range.start(), message.reserved_name.join(" ")));
    }
    for nested in message.nested_type.iter().filter(|nested| !is_map_entry(nested)) {
        describe_message(&name, nested, lines);
    }
    message.enum_type.iter().for_each(|values| describe_enum(&name, values, lines));
    lines.push(heading);
}

fn shape(field: &FieldDescriptorProto, message: &DescriptorProto) -> String {
    let label = match (field.label(), field.oneof_index) {
        _ if field.proto3_optional() => "optional ".to_owned(),
        (Label::Repeated, _) => {
            if let Some(entry) = map_entry(field, message) {
                return format!("map<{}, {}>", kind(&entry.field[0]), kind(&entry.field[1]));
            }
            "repeated ".to_owned()
        }
        (_, Some(index)) => format!("oneof {} ", message.oneof_decl[usize::try_from(index).unwrap()].name()),
        _ => String::new(),
    };
    format!("{label}{}", kind(field))
}

fn kind(field: &FieldDescriptorProto) -> String {
    match field.r#type() {
        Type::Message | Type::Enum => short(field.type_name()),
        scalar => scalar.as_str_name().trim_start_matches("TYPE_").to_lowercase(),
    }
}

fn map_entry<'a>(field: &FieldDescriptorProto, message: &'a DescriptorProto) -> Option<&'a DescriptorProto> {
    let (_, name) = field.type_name().rsplit_once('.')?;
    message.nested_type.iter().find(|nested| nested.name() == name && is_map_entry(nested))
}

fn is_map_entry(message: &DescriptorProto) -> bool {
    message.options.as_ref().is_some_and(|options| options.map_entry())
}

fn describe_enum(scope: &str, values: &EnumDescriptorProto, lines: &mut Vec<String>) {
    let first = values.value[0].name();
    let prefix = first.strip_suffix("UNSPECIFIED").unwrap_or(first);
    let heading = format!("enum {scope}.{} {prefix}", values.name());
    for value in &values.value {
        let name = value.name().strip_prefix(prefix).unwrap_or(value.name());
        lines.push(format!("{heading} | {} {name}", value.number()));
    }
    lines.push(heading);
}

fn describe_service(scope: &str, service: &ServiceDescriptorProto, lines: &mut Vec<String>) {
    let heading = format!("service {scope}.{}", service.name());
    for method in &service.method {
        let stream = |streaming: bool| if streaming { "stream " } else { "" };
        lines.push(format!(
            "{heading} | {} ({}{}) -> {}{}",
            method.name(),
            stream(method.client_streaming()),
            short(method.input_type()),
            stream(method.server_streaming()),
            short(method.output_type()),
        ));
    }
    lines.push(heading);
}

fn short(name: &str) -> String {
    let name = name.trim_start_matches('.');
    ["pluggableharness.", "google.protobuf."]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name)
        .to_owned()
}

#[test]
fn contract_and_table_agree_in_both_directions() {
    let (table, built) = (table(), built());
    let expected: BTreeSet<&String> = table.iter().collect();
    let found: BTreeSet<&String> = built.iter().collect();
    let missing: Vec<_> = expected.difference(&found).collect();
    let additional: Vec<_> = found.difference(&expected).collect();
    assert!(
        missing.is_empty() && additional.is_empty(),
        "missing: {missing:#?}\nadditional: {additional:#?}"
    );
    assert_eq!(table.len(), expected.len(), "the table says something twice");
    assert_eq!(built.len(), found.len(), "the contract says something twice");
}

#[test]
fn every_file_lies_where_its_package_says() {
    let stems = ["types", "events", "errors", "rpc_request", "rpc_response", "service"];
    for file in own_files() {
        let (directory, stem) = file.name().rsplit_once('/').expect("a file lies in a directory");
        assert_eq!(directory, file.package().replace('.', "/"), "{}", file.name());
        let stem = stem.trim_end_matches(".proto");
        assert!(stems.contains(&stem) || file.package().starts_with("toolcatalog."), "{}", file.name());
    }
}

#[test]
fn every_enum_begins_with_unspecified() {
    fn check(scope: &str, values: &EnumDescriptorProto) {
        let zero = &values.value[0];
        assert!(zero.number() == 0 && zero.name().ends_with("_UNSPECIFIED"), "{scope}.{}", values.name());
    }
    for file in own_files() {
        file.enum_type.iter().for_each(|values| check(file.package(), values));
        for message in &file.message_type {
            message.enum_type.iter().for_each(|values| check(message.name(), values));
        }
    }
}
