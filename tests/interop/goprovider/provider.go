package main

import (
	"context"
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pluggable-harness/catalog/tests/interop/gen/commonv1"
	"github.com/pluggable-harness/catalog/tests/interop/gen/configv1"
	"github.com/pluggable-harness/catalog/tests/interop/gen/renderv1"
	"github.com/pluggable-harness/catalog/tests/interop/gen/toolv1"
)

type provider struct {
	toolv1.UnimplementedToolServiceServer
	conduct conduct
	kernel  *kernel
}

func (p *provider) Describe(context.Context, *toolv1.DescribeRequest) (*toolv1.DescribeResponse, error) {
	return &toolv1.DescribeResponse{Producer: &commonv1.ProducerRef{
		Name:            "goprovider",
		Version:         "0.1.0",
		Source:          "github.com/pluggable-harness/catalog",
		Category:        commonv1.Category_CATEGORY_TOOL,
		ProtocolVersion: 1,
	}}, nil
}

func (p *provider) GetSchema(context.Context, *toolv1.GetSchemaRequest) (*toolv1.GetSchemaResponse, error) {
	fallback := `"hello"`
	return &toolv1.GetSchemaResponse{
		Tools: []*toolv1.ToolSchema{echoSchema(), writeNoteSchema(), countSchema()},
		ConfigSchema: &configv1.ConfigSchema{Attributes: []*configv1.ConfigAttribute{{
			Name:        "greeting",
			Type:        configv1.AttrType_ATTR_TYPE_STRING,
			Description: "Word the provider logs when it is configured.",
			DefaultJson: &fallback,
		}}},
	}, nil
}

func (p *provider) Configure(ctx context.Context, request *toolv1.ConfigureRequest) (*toolv1.ConfigureResponse, error) {
	greeting := "hello"
	for name, value := range request.GetConfig().GetFields() {
		if name != "greeting" {
			return nil, invalid("there is no attribute %q", name)
		}
		switch value.GetKind().(type) {
		case *structpb.Value_StringValue:
			greeting = value.GetStringValue()
		case *structpb.Value_NullValue:
			// A kernel hands over an omitted attribute as null.
		default:
			return nil, invalid("greeting has to be a string")
		}
	}
	p.kernel.log(ctx, "", "configured", map[string]any{"greeting": greeting})
	return &toolv1.ConfigureResponse{}, nil
}

func (p *provider) Render(_ context.Context, request *toolv1.RenderRequest) (*toolv1.RenderResponse, error) {
	if version := request.GetSchemaVersion(); version != "1" {
		return nil, invalid("there is no version %q of a result", version)
	}
	payload := &structpb.Struct{}
	if err := protojson.Unmarshal(request.GetPayload(), payload); err != nil {
		return nil, invalid("the payload is not a result of this provider: %v", err)
	}
	return &toolv1.RenderResponse{Tree: textTree(protojson.Format(payload))}, nil
}

func (p *provider) Preview(_ context.Context, request *toolv1.PreviewRequest) (*toolv1.PreviewResponse, error) {
	call := request.GetCall()
	if call.GetToolName() != writeNote {
		return nil, status.Error(codes.Unimplemented, "only write_note has a preview")
	}
	note, failure := parseNote(call.GetArguments())
	if failure != nil {
		return nil, invalid("%s", failure.GetMessage())
	}
	line := &renderv1.DiffLine{Op: renderv1.DiffLineOp_DIFF_LINE_OP_ADD, Text: note.text}
	hunk := &renderv1.DiffHunk{NewStart: 1, NewLines: 1, Lines: []*renderv1.DiffLine{line}}
	diff := &renderv1.DiffNode{Hunks: []*renderv1.DiffHunk{hunk}}
	return &toolv1.PreviewResponse{Preview: &renderv1.RenderTree{Root: &renderv1.RenderNode{
		Node: &renderv1.RenderNode_Diff{Diff: diff},
	}}}, nil
}

func textTree(text string) *renderv1.RenderTree {
	return &renderv1.RenderTree{Root: &renderv1.RenderNode{
		Node: &renderv1.RenderNode_Text{Text: &renderv1.TextNode{Content: text}},
	}}
}

// invalid is a refusal outside of a call, with the detail that hosts expect.
func invalid(format string, values ...any) error {
	refusal := status.New(codes.InvalidArgument, fmt.Sprintf(format, values...))
	detailed, err := refusal.WithDetails(&errdetails.ErrorInfo{
		Reason: "invalid_arguments",
		Domain: "tool.pluggableharness.dev",
	})
	if err != nil {
		return refusal.Err()
	}
	return detailed.Err()
}
