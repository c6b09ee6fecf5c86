package main

import (
	"context"
	"os"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pluggable-harness/catalog/tests/interop/gen/toolv1"
)

func (p *provider) Invoke(request *toolv1.InvokeRequest, stream toolv1.ToolService_InvokeServer) error {
	call := request.GetCall()
	if call == nil {
		return invalid("there is no call")
	}
	send := func(event *toolv1.ToolEvent) error { return stream.Send(&toolv1.InvokeResponse{Event: event}) }
	ended := run(stream.Context(), call, send)
	// The entry has to get out even though the call may be cancelled.
	p.kernel.log(context.WithoutCancel(stream.Context()), call.GetCallContext().GetSessionId(),
		"call ended", map[string]any{"call": call.GetId(), "failed": ended.failed != nil})
	if ended.failed == nil && p.conduct != good {
		return p.misbehave(ended, send)
	}
	return finish(ended, send)
}

func run(ctx context.Context, call *toolv1.ToolCall, send func(*toolv1.ToolEvent) error) outcome {
	switch call.GetToolName() {
	case echo:
		return runEcho(call.GetArguments())
	case writeNote:
		return runWriteNote(call)
	case count:
		return runCount(ctx, call.GetArguments(), send)
	}
	return outcome{failed: failure(
		toolv1.ToolErrorCategory_TOOL_ERROR_CATEGORY_NOT_FOUND, "there is no tool %q", call.GetToolName(),
	)}
}

func finish(ended outcome, send func(*toolv1.ToolEvent) error) error {
	if ended.failed != nil {
		return send(&toolv1.ToolEvent{Event: &toolv1.ToolEvent_Error{Error: ended.failed}})
	}
	payload, err := structpb.NewStruct(ended.result)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return send(&toolv1.ToolEvent{Event: &toolv1.ToolEvent_Result{Result: &toolv1.ToolResult{Payload: payload}}})
}

// misbehave ends a successful call in the way the conduct says.
func (p *provider) misbehave(ended outcome, send func(*toolv1.ToolEvent) error) error {
	switch p.conduct {
	case noTerminal:
		return send(chunk("all there is"))
	case twoTerminals:
		return sequence(func() error { return finish(ended, send) }, func() error { return finish(ended, send) })
	case chunkAfterTerminal:
		return sequence(func() error { return finish(ended, send) }, func() error { return send(chunk("late")) })
	case exitMidStream:
		// The chunk is lost or not, as the transport likes; the process is gone in any case.
		_ = send(chunk("last words"))
		os.Exit(3)
	case longStdoutLine:
		return sequence(writeLongLine, func() error { return finish(ended, send) })
	case nullField:
		for name := range ended.result {
			ended.result[name] = nil
		}
	case missingField:
		ended.result = map[string]any{}
	}
	return finish(ended, send)
}

func sequence(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func chunk(data string) *toolv1.ToolEvent {
	return &toolv1.ToolEvent{Event: &toolv1.ToolEvent_OutputChunk_{OutputChunk: &toolv1.ToolEvent_OutputChunk{
		Stream: toolv1.OutputStream_OUTPUT_STREAM_STDOUT,
		Data:   []byte(data),
	}}}
}

// writeLongLine writes to the real standard output: the library has put a pipe of its own in place of os.Stdout.
func writeLongLine() error {
	for rest := []byte(strings.Repeat("x", 70*1024) + "\n"); len(rest) > 0; {
		written, err := syscall.Write(syscall.Stdout, rest)
		if err != nil {
			return err
		}
		rest = rest[written:]
	}
	return nil
}
