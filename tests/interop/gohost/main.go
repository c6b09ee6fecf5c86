// Gohost drives one tool provider through the original plugin library, in the order the kernel does, and judges it.
//
//	gohost [-mtls] [-script FILE] PROVIDER
//
// The script says how to configure the provider and what to call; without one only the bring-up and the end are
// judged. A report in JSON goes to standard output, one line per failure to standard error. The exit code is 0 when
// nothing failed, 1 when the provider failed and 2 when the host could not do its work.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
)

func main() {
	mtls := flag.Bool("mtls", false, "ask for mutual TLS, as the library can do by itself")
	scriptPath := flag.String("script", "", "what to configure and to call")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: gohost [-mtls] [-script FILE] PROVIDER")
		os.Exit(2)
	}
	plan, err := readScript(*scriptPath)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gohost:", err)
		os.Exit(2)
	}
	report := newReport()
	if err := judge(flag.Arg(0), *mtls, plan, report); err != nil {
		report.fail("%v", err)
	}
	if err := report.write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gohost:", err)
		os.Exit(2)
	}
	for _, failure := range report.Failures {
		fmt.Fprintln(os.Stderr, "FAIL:", failure)
	}
	if len(report.Failures) > 0 {
		os.Exit(1)
	}
}

// script is what a test wants to happen.
type script struct {
	// Config is handed to Configure.
	Config map[string]any `json:"config"`
	// Calls are made one after another.
	Calls []scriptCall `json:"calls"`
	// Nested is how every nested session ends. Without it the kernel has none.
	Nested *scriptNested `json:"nested"`
	// WantLogSessions are the sessions that log entries have to arrive for.
	WantLogSessions []string `json:"want_log_sessions"`
}

// scriptNested is what comes of RunSession.
type scriptNested struct {
	// Status is the status without its prefix, such as "COMPLETED".
	Status string `json:"status"`
	Text   string `json:"text"`
	// Depth is the depth of the session that calls.
	Depth int `json:"depth"`
}

// scriptCall is one call and what has to come of it.
type scriptCall struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
	Session   string         `json:"session"`
	Directory string         `json:"directory"`
	// Preview asks for a preview first, Render for a picture of the result afterwards.
	Preview bool `json:"preview"`
	Render  bool `json:"render"`
	// Cancel says how the call is cancelled, if it is.
	Cancel *scriptCancel `json:"cancel"`
	// Want is "result", the category of an error such as "NOT_FOUND", or "cancelled".
	Want string `json:"want"`
}

// scriptCancel cancels a call after its first event or after a while.
type scriptCancel struct {
	// By is "reset", which is the kernel's way, or "control", which is the catalog's own service: the stream stays
	// open for the last events.
	By              string `json:"by"`
	AfterFirstEvent bool   `json:"after_first_event"`
	AfterMs         int    `json:"after_ms"`
}

func readScript(path string) (*script, error) {
	plan := &script{}
	if path == "" {
		return plan, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(plan); err != nil {
		return nil, fmt.Errorf("reading the script: %w", err)
	}
	return plan, nil
}
