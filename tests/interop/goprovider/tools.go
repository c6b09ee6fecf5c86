package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pluggable-harness/catalog/tests/interop/gen/toolv1"
)

// outcome is the terminal event of a call.
type outcome struct {
	result map[string]any
	failed *toolv1.ToolError
}

func failure(category toolv1.ToolErrorCategory, format string, values ...any) *toolv1.ToolError {
	return &toolv1.ToolError{Category: category, Message: fmt.Sprintf(format, values...)}
}

func invalidArguments(format string, values ...any) *toolv1.ToolError {
	return failure(toolv1.ToolErrorCategory_TOOL_ERROR_CATEGORY_INVALID_ARGUMENTS, format, values...)
}

// stringArgument reads a required string. The kernel does not check arguments, so a tool does.
func stringArgument(arguments *structpb.Struct, name string) (string, *toolv1.ToolError) {
	value, ok := arguments.GetFields()[name].GetKind().(*structpb.Value_StringValue)
	if !ok {
		return "", invalidArguments("%s has to be a string", name)
	}
	return value.StringValue, nil
}

// wholeArgument reads a whole number between two bounds; without a fallback it is required.
func wholeArgument(
	arguments *structpb.Struct, name string, lowest, highest int, fallback *int,
) (int, *toolv1.ToolError) {
	field, present := arguments.GetFields()[name]
	if !present && fallback != nil {
		return *fallback, nil
	}
	value, ok := field.GetKind().(*structpb.Value_NumberValue)
	if !ok || value.NumberValue != math.Trunc(value.NumberValue) ||
		value.NumberValue < float64(lowest) || value.NumberValue > float64(highest) {
		return 0, invalidArguments("%s has to be a whole number from %d to %d", name, lowest, highest)
	}
	return int(value.NumberValue), nil
}

func runEcho(arguments *structpb.Struct) outcome {
	said, failed := stringArgument(arguments, "text")
	if failed != nil {
		return outcome{failed: failed}
	}
	return outcome{result: map[string]any{"text": said, "length": len(said)}}
}

type note struct {
	name string
	text string
}

func parseNote(arguments *structpb.Struct) (note, *toolv1.ToolError) {
	name, failed := stringArgument(arguments, "name")
	if failed != nil {
		return note{}, failed
	}
	line, failed := stringArgument(arguments, "text")
	if failed != nil {
		return note{}, failed
	}
	if name == "" || name != filepath.Base(name) || name == "." || name == ".." || strings.ContainsRune(name, 0) {
		return note{}, invalidArguments("name has to be the name of a file, without a directory")
	}
	return note{name: name, text: line}, nil
}

func runWriteNote(call *toolv1.ToolCall) outcome {
	parsed, failed := parseNote(call.GetArguments())
	if failed != nil {
		return outcome{failed: failed}
	}
	directory := call.GetCallContext().GetWorkingDirectory()
	if directory == "" {
		return outcome{failed: invalidArguments("there is no working directory to write to")}
	}
	path := filepath.Join(directory, parsed.name)
	content := parsed.text + "\n"
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		return outcome{failed: failure(toolv1.ToolErrorCategory_TOOL_ERROR_CATEGORY_EXECUTION_FAILED, "%v", err)}
	}
	return outcome{result: map[string]any{"path": path, "bytes": len(content)}}
}

func runCount(ctx context.Context, arguments *structpb.Struct, report func(*toolv1.ToolEvent) error) outcome {
	to, failed := wholeArgument(arguments, "to", 1, 100000, nil)
	if failed != nil {
		return outcome{failed: failed}
	}
	none := 0
	pause, failed := wholeArgument(arguments, "pause_ms", 0, 1000, &none)
	if failed != nil {
		return outcome{failed: failed}
	}
	for at := 1; at <= to; at++ {
		select {
		case <-time.After(time.Duration(pause) * time.Millisecond):
		case <-ctx.Done():
			return cancelled(at - 1)
		}
		fraction := float64(at) / float64(to)
		progress := &toolv1.ToolEvent_Progress{Message: fmt.Sprintf("%d", at), FractionComplete: &fraction}
		if err := report(&toolv1.ToolEvent{Event: &toolv1.ToolEvent_Progress_{Progress: progress}}); err != nil {
			return cancelled(at)
		}
	}
	return outcome{result: map[string]any{"counted": to}}
}

func cancelled(at int) outcome {
	return outcome{failed: failure(toolv1.ToolErrorCategory_TOOL_ERROR_CATEGORY_CANCELLED, "cancelled at %d", at)}
}
