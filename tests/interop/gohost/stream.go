package main

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pluggable-harness/catalog/tests/interop/gen/toolv1"
)

// streamSeen is what has come over the stream of one call.
type streamSeen struct {
	result    *toolv1.ToolResult
	failed    *toolv1.ToolError
	terminals int
	late      int
	empty     int
	early     int
	broken    error
}

// take notes one event.
func (o *streamSeen) take(event *toolv1.ToolEvent, seen *callSeen) {
	if o.terminals > 0 {
		o.late++
	}
	early := o.terminals == 0
	name := "progress"
	switch happened := event.GetEvent().(type) {
	case *toolv1.ToolEvent_OutputChunk_:
		name = "output_chunk"
	case *toolv1.ToolEvent_Progress_:
	case *toolv1.ToolEvent_PartialResult_:
		name = "partial_result"
	case *toolv1.ToolEvent_ExitStatus_:
		name, early = "exit_status", false
	case *toolv1.ToolEvent_Result:
		name, early, o.result = "result", false, happened.Result
		o.terminals++
		seen.Result = happened.Result.GetPayload().AsMap()
	case *toolv1.ToolEvent_Error:
		name, early, o.failed = "error", false, happened.Error
		o.terminals++
		seen.Error = &errorSeen{
			Category:  strings.TrimPrefix(happened.Error.GetCategory().String(), "TOOL_ERROR_CATEGORY_"),
			Message:   happened.Error.GetMessage(),
			Retryable: happened.Error.GetRetryable(),
			Details:   happened.Error.GetDetails().AsMap(),
		}
	default:
		name, early, o.empty = "empty", false, o.empty+1
	}
	if early {
		o.early++
	}
	seen.Events = append(seen.Events, name)
}

// brokenRules says what is wrong with the stream, first by the contract and then by the script.
func (o *streamSeen) brokenRules(wanted *scriptCall, tool *toolv1.ToolSchema) []string {
	var broken []string
	complain := func(format string, values ...any) { broken = append(broken, fmt.Sprintf(format, values...)) }
	if o.late > 0 {
		complain("%d events follow the terminal one", o.late)
	}
	if o.terminals > 1 {
		complain("there are %d terminal events", o.terminals)
	}
	if o.empty > 0 {
		complain("%d events are empty", o.empty)
	}
	if o.early > 0 && !tool.GetStreaming() {
		complain("%d events precede the terminal one of a tool that does not stream", o.early)
	}
	if o.result != nil && tool != nil {
		if violation := violation(tool.GetOutputSchema(), o.result.GetPayload()); violation != "" {
			complain("the result breaks the output schema: %s", violation)
		}
	}
	return append(broken, o.brokenWishes(wanted)...)
}

func (o *streamSeen) brokenWishes(wanted *scriptCall) []string {
	if wanted.Want == "cancelled" {
		return o.brokenCancellation(wanted.Cancel)
	}
	switch {
	case o.broken != nil:
		return []string{fmt.Sprintf("the stream broke: %v", o.broken)}
	case o.terminals == 0:
		return []string{"there is no terminal event"}
	case wanted.Want == "result" && o.result == nil:
		return []string{fmt.Sprintf("want a result, got %v", o.failed)}
	case wanted.Want == "result":
		return nil
	}
	if got := o.failed.GetCategory().String(); got != "TOOL_ERROR_CATEGORY_"+wanted.Want {
		return []string{fmt.Sprintf("want %s, got %s: %s", wanted.Want, got, o.failed.GetMessage())}
	}
	return nil
}

// brokenCancellation: after a reset the library sees CANCELLED and nothing else; over the catalog's own service the
// stream ends in order, with the error of a cancelled call or without a terminal event.
func (o *streamSeen) brokenCancellation(cancel *scriptCancel) []string {
	if o.result != nil {
		return []string{"a cancelled call ended with a result"}
	}
	if cancel == nil || cancel.By != "control" {
		if status.Code(o.broken) != codes.Canceled {
			return []string{fmt.Sprintf("want the status CANCELLED, got %v", o.broken)}
		}
		return nil
	}
	if o.broken != nil {
		return []string{fmt.Sprintf("the stream broke: %v", o.broken)}
	}
	cancelled := toolv1.ToolErrorCategory_TOOL_ERROR_CATEGORY_CANCELLED
	if o.failed != nil && o.failed.GetCategory() != cancelled {
		return []string{fmt.Sprintf("want CANCELLED, got %s", o.failed.GetCategory())}
	}
	return nil
}
