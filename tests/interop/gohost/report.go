package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// report is everything the host saw.
type report struct {
	Producer        producerSeen   `json:"producer"`
	Tools           []string       `json:"tools"`
	PreviewOffered  []string       `json:"preview_offered"`
	Calls           []callSeen     `json:"calls"`
	Callbacks       map[string]int `json:"callbacks"`
	Log             []entrySeen    `json:"log"`
	Nested          []nestedSeen   `json:"nested"`
	Exit            exitSeen       `json:"exit"`
	LeftOverSockets []string       `json:"left_over_sockets"`
	Failures        []string       `json:"failures"`
}

type producerSeen struct {
	Name            string `json:"name"`
	Version         string `json:"version"`
	Source          string `json:"source"`
	ProtocolVersion uint32 `json:"protocol_version"`
}

type callSeen struct {
	Tool   string   `json:"tool"`
	Events []string `json:"events"`
	Status string   `json:"status"`
	// Milliseconds from the call to the end of its stream; from the cancellation when there was one.
	Milliseconds int64          `json:"milliseconds"`
	Result       map[string]any `json:"result,omitempty"`
	Error        *errorSeen     `json:"error,omitempty"`
	Preview      string         `json:"preview,omitempty"`
	Render       string         `json:"render,omitempty"`
}

type errorSeen struct {
	Category  string         `json:"category"`
	Message   string         `json:"message"`
	Retryable bool           `json:"retryable"`
	Details   map[string]any `json:"details,omitempty"`
}

type entrySeen struct {
	Session string         `json:"session"`
	Level   string         `json:"level"`
	Logger  string         `json:"logger"`
	Message string         `json:"message"`
	Fields  map[string]any `json:"fields,omitempty"`
}

type nestedSeen struct {
	Profile        string  `json:"profile"`
	Prompt         string  `json:"prompt"`
	Parent         string  `json:"parent"`
	RemainingDepth int32   `json:"remaining_depth"`
	RemainingCost  float64 `json:"remaining_cost"`
}

type exitSeen struct {
	Code         int    `json:"code"`
	Signal       string `json:"signal,omitempty"`
	Milliseconds int64  `json:"milliseconds"`
}

// newReport has empty lists where nothing was seen, so that a reader finds every key.
func newReport() *report {
	return &report{
		Tools:           []string{},
		PreviewOffered:  []string{},
		Calls:           []callSeen{},
		Callbacks:       map[string]int{},
		Log:             []entrySeen{},
		Nested:          []nestedSeen{},
		LeftOverSockets: []string{},
		Failures:        []string{},
	}
}

func (r *report) fail(format string, values ...any) {
	r.Failures = append(r.Failures, fmt.Sprintf(format, values...))
}

func (r *report) write(to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
