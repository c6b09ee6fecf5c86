package main

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pluggable-harness/catalog/tests/interop/gen/schemav1"
	"github.com/pluggable-harness/catalog/tests/interop/gen/toolv1"
)

const (
	echo      = "echo"
	writeNote = "write_note"
	count     = "count"
)

func text(description string) *schemav1.Schema {
	return &schemav1.Schema{Type: schemav1.SchemaType_SCHEMA_TYPE_STRING, Description: description}
}

func number(description string) *schemav1.Schema {
	return &schemav1.Schema{Type: schemav1.SchemaType_SCHEMA_TYPE_NUMBER, Description: description}
}

func object(description string, properties map[string]*schemav1.Schema, required ...string) *schemav1.Schema {
	return &schemav1.Schema{
		Type:        schemav1.SchemaType_SCHEMA_TYPE_OBJECT,
		Description: description,
		Properties:  properties,
		Required:    required,
	}
}

func echoSchema() *toolv1.ToolSchema {
	return &toolv1.ToolSchema{
		Name:        echo,
		Kind:        toolv1.ToolKind_TOOL_KIND_DATA_SOURCE,
		Risk:        toolv1.RiskClass_RISK_CLASS_READ_ONLY,
		Description: "Gives back the text it is given.",
		InputSchema: object("What to say.", map[string]*schemav1.Schema{
			"text": text("Text to give back."),
		}, "text"),
		OutputSchema: object("What was said.", map[string]*schemav1.Schema{
			"text":   text("The text."),
			"length": number("Its length in bytes."),
		}, "text", "length"),
		Concurrency:    &toolv1.ConcurrencySpec{Safe: true},
		DefaultTimeout: durationpb.New(10 * time.Second),
		Idempotent:     true,
	}
}

func writeNoteSchema() *toolv1.ToolSchema {
	return &toolv1.ToolSchema{
		Name:        writeNote,
		Kind:        toolv1.ToolKind_TOOL_KIND_RESOURCE,
		Risk:        toolv1.RiskClass_RISK_CLASS_MODERATE,
		Description: "Writes one line into a file of the working directory.",
		InputSchema: object("The note.", map[string]*schemav1.Schema{
			"name": text("Name of the file, without a directory."),
			"text": text("The line."),
		}, "name", "text"),
		OutputSchema: object("What was written.", map[string]*schemav1.Schema{
			"path":  text("Path of the file."),
			"bytes": number("Bytes written."),
		}, "path", "bytes"),
		Concurrency:    &toolv1.ConcurrencySpec{Safe: true, KeyFields: []string{"name"}},
		DefaultTimeout: durationpb.New(10 * time.Second),
		Idempotent:     true,
	}
}

func countSchema() *toolv1.ToolSchema {
	return &toolv1.ToolSchema{
		Name:        count,
		Kind:        toolv1.ToolKind_TOOL_KIND_DATA_SOURCE,
		Risk:        toolv1.RiskClass_RISK_CLASS_READ_ONLY,
		Description: "Counts aloud, one step at a time.",
		InputSchema: object("How to count.", map[string]*schemav1.Schema{
			"to":       number("Last number, from 1 to 100000."),
			"pause_ms": number("Pause before each number in milliseconds, from 0 to 1000; 0 when left out."),
		}, "to"),
		OutputSchema: object("What was counted.", map[string]*schemav1.Schema{
			"counted": number("The last number."),
		}, "counted"),
		Streaming:      true,
		Concurrency:    &toolv1.ConcurrencySpec{Safe: true},
		DefaultTimeout: durationpb.New(2 * time.Minute),
		Idempotent:     true,
	}
}
