package main

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pluggable-harness/catalog/tests/interop/gen/schemav1"
	"github.com/pluggable-harness/catalog/tests/interop/gen/toolv1"
)

// brokenRules says which rules of the contract a tool breaks.
func brokenRules(tool *toolv1.ToolSchema) []string {
	var broken []string
	demand := func(holds bool, rule string) {
		if !holds {
			broken = append(broken, rule)
		}
	}
	resource := tool.GetKind() == toolv1.ToolKind_TOOL_KIND_RESOURCE
	interactive := tool.GetKind() == toolv1.ToolKind_TOOL_KIND_INTERACTIVE
	readOnly := tool.GetRisk() == toolv1.RiskClass_RISK_CLASS_READ_ONLY
	demand(tool.GetName() != "", "it has no name")
	demand(tool.GetDescription() != "", "it has no description")
	demand(tool.GetKind() != toolv1.ToolKind_TOOL_KIND_UNSPECIFIED, "it has no kind")
	demand(tool.GetRisk() != toolv1.RiskClass_RISK_CLASS_UNSPECIFIED, "it has no risk")
	demand(readOnly != resource, "its risk does not fit its kind")
	demand((tool.GetConcurrency() == nil) == interactive, "concurrency is for all but interactive tools")
	demand(tool.GetConcurrency().GetSafe() || len(tool.GetConcurrency().GetKeyFields()) == 0, "it has keys without being safe")
	demand(resource || !tool.GetTerminatesTurn(), "only a resource tool ends the turn")
	for _, field := range tool.GetConcurrency().GetKeyFields() {
		_, declared := tool.GetInputSchema().GetProperties()[field]
		demand(declared, "its key "+field+" is no property of its input")
	}
	broken = append(broken, brokenSchema("input", tool.GetInputSchema())...)
	return append(broken, brokenSchema("output", tool.GetOutputSchema())...)
}

func brokenSchema(path string, schema *schemav1.Schema) []string {
	if schema == nil || schema.GetType() == schemav1.SchemaType_SCHEMA_TYPE_UNSPECIFIED {
		return []string{path + " has no type"}
	}
	var broken []string
	object := schema.GetType() == schemav1.SchemaType_SCHEMA_TYPE_OBJECT
	array := schema.GetType() == schemav1.SchemaType_SCHEMA_TYPE_ARRAY
	text := schema.GetType() == schemav1.SchemaType_SCHEMA_TYPE_STRING
	if !object && len(schema.GetProperties())+len(schema.GetRequired()) > 0 {
		broken = append(broken, path+" has properties without being an object")
	}
	if array != (schema.GetItems() != nil) {
		broken = append(broken, path+" has to have items exactly when it is an array")
	}
	if !text && len(schema.GetEnumValues()) > 0 {
		broken = append(broken, path+" has a closed set without being a string")
	}
	for _, name := range schema.GetRequired() {
		if schema.GetProperties()[name] == nil {
			broken = append(broken, path+" requires "+name+", which it does not declare")
		}
	}
	for name, property := range schema.GetProperties() {
		broken = append(broken, brokenSchema(path+"."+name, property)...)
	}
	if schema.GetItems() != nil {
		broken = append(broken, brokenSchema(path+"[]", schema.GetItems())...)
	}
	return broken
}

// violation is the first way in which a payload breaks a schema, or empty. A missing payload is an empty object.
func violation(schema *schemav1.Schema, payload *structpb.Struct) string {
	if payload == nil {
		payload = &structpb.Struct{}
	}
	return valueViolation("payload", schema, structpb.NewStructValue(payload))
}

func valueViolation(path string, schema *schemav1.Schema, value *structpb.Value) string {
	found := fmt.Sprintf("%s is %T", path, value.GetKind())
	switch schema.GetType() {
	case schemav1.SchemaType_SCHEMA_TYPE_OBJECT:
		if value.GetStructValue() == nil {
			return found
		}
		return objectViolation(path, schema, value.GetStructValue())
	case schemav1.SchemaType_SCHEMA_TYPE_ARRAY:
		if value.GetListValue() == nil {
			return found
		}
		for index, item := range value.GetListValue().GetValues() {
			if broken := valueViolation(fmt.Sprintf("%s[%d]", path, index), schema.GetItems(), item); broken != "" {
				return broken
			}
		}
	case schemav1.SchemaType_SCHEMA_TYPE_STRING:
		text, ok := value.GetKind().(*structpb.Value_StringValue)
		if !ok {
			return found
		}
		if set := schema.GetEnumValues(); len(set) > 0 && !slices.Contains(set, text.StringValue) {
			return fmt.Sprintf("%s is none of %v", path, set)
		}
	case schemav1.SchemaType_SCHEMA_TYPE_NUMBER:
		if _, ok := value.GetKind().(*structpb.Value_NumberValue); !ok {
			return found
		}
	case schemav1.SchemaType_SCHEMA_TYPE_BOOLEAN:
		if _, ok := value.GetKind().(*structpb.Value_BoolValue); !ok {
			return found
		}
	}
	return ""
}

func objectViolation(path string, schema *schemav1.Schema, object *structpb.Struct) string {
	for _, name := range schema.GetRequired() {
		if _, present := object.GetFields()[name]; !present {
			return path + "." + name + " is missing"
		}
	}
	for name, value := range object.GetFields() {
		if property := schema.GetProperties()[name]; property != nil {
			if broken := valueViolation(path+"."+name, property, value); broken != "" {
				return broken
			}
		}
	}
	return ""
}
