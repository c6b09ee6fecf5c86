// Command projectfile reads a project's agent.hcl and lock file with the library the kernel uses for them, as
// strictly as the kernel does: what is not declared is an error, and only env() can be called in a provider's body.
// It prints what it understood as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsimple"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

type lockFile struct {
	Version   int   `hcl:"lock_file_version"`
	Providers []row `hcl:"provider,block"`
}

type row struct {
	Name       string            `hcl:"name,label" json:"name"`
	Source     string            `hcl:"source" json:"source"`
	Version    string            `hcl:"version" json:"version"`
	ResolvedAt string            `hcl:"resolved_at" json:"resolved_at"`
	Checksums  map[string]string `hcl:"checksums" json:"checksums"`
	Category   string            `hcl:"category,optional" json:"category"`
}

type agentFile struct {
	Required  []body     `hcl:"required_providers,block"`
	Providers []provider `hcl:"provider,block"`
}

type body struct {
	Rest hcl.Body `hcl:",remain"`
}

type provider struct {
	Name string   `hcl:"name,label"`
	Rest hcl.Body `hcl:",remain"`
}

type requirement struct {
	Source  string `cty:"source" json:"source"`
	Version string `cty:"version" json:"version"`
}

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: projectfile AGENT_HCL LOCK_FILE"))
	}
	required, configured, err := readAgent(os.Args[1])
	if err != nil {
		fail(err)
	}
	rows, err := readLock(os.Args[2])
	if err != nil {
		fail(err)
	}
	if err := compare(required, rows); err != nil {
		fail(err)
	}
	out := json.NewEncoder(os.Stdout)
	_ = out.Encode(map[string]any{"required": required, "configured": configured, "locked": rows})
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func readAgent(path string) (map[string]requirement, map[string]json.RawMessage, error) {
	var file agentFile
	if err := hclsimple.DecodeFile(path, nil, &file); err != nil {
		return nil, nil, err
	}
	required := map[string]requirement{}
	for _, block := range file.Required {
		attributes, diagnostics := block.Rest.JustAttributes()
		if diagnostics.HasErrors() {
			return nil, nil, diagnostics
		}
		for name, attribute := range attributes {
			var wanted requirement
			if diagnostics := gohcl.DecodeExpression(attribute.Expr, nil, &wanted); diagnostics.HasErrors() {
				return nil, nil, diagnostics
			}
			required[name] = wanted
		}
	}
	configured := map[string]json.RawMessage{}
	for _, block := range file.Providers {
		values, err := evaluate(block.Rest)
		if err != nil {
			return nil, nil, err
		}
		configured[block.Name] = values
	}
	return required, configured, nil
}

// evaluate gives the attributes of a provider's body, in which nothing but env() is known.
func evaluate(rest hcl.Body) (json.RawMessage, error) {
	context := &hcl.EvalContext{Functions: map[string]function.Function{"env": function.New(&function.Spec{
		Params: []function.Parameter{{Name: "name", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.StringVal(os.Getenv(args[0].AsString())), nil
		},
	})}}
	attributes, diagnostics := rest.JustAttributes()
	if diagnostics.HasErrors() {
		return nil, diagnostics
	}
	values := map[string]cty.Value{}
	for name, attribute := range attributes {
		value, diagnostics := attribute.Expr.Value(context)
		if diagnostics.HasErrors() {
			return nil, diagnostics
		}
		values[name] = value
	}
	object := cty.ObjectVal(values)
	return ctyjson.Marshal(object, object.Type())
}

var checksum = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func readLock(path string) ([]row, error) {
	var file lockFile
	if err := hclsimple.DecodeFile(path, nil, &file); err != nil {
		return nil, err
	}
	if file.Version != 1 {
		return nil, fmt.Errorf("lock_file_version is %d", file.Version)
	}
	for _, row := range file.Providers {
		if _, err := time.Parse(time.RFC3339, row.ResolvedAt); err != nil {
			return nil, err
		}
		for platform, hash := range row.Checksums {
			if !checksum.MatchString(hash) {
				return nil, fmt.Errorf("%s: %s has the checksum %q", row.Name, platform, hash)
			}
		}
	}
	return file.Providers, nil
}

// compare finds a locked version, of the same source, for everything that is required.
func compare(required map[string]requirement, rows []row) error {
	for name, wanted := range required {
		constraint, err := version.NewConstraint(wanted.Version)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		found := false
		for _, row := range rows {
			if row.Name != name {
				continue
			}
			locked, err := version.NewVersion(row.Version)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			found = row.Source == wanted.Source && constraint.Check(locked)
		}
		if !found {
			return fmt.Errorf("%s: nothing that is locked fits %s %s", name, wanted.Source, wanted.Version)
		}
	}
	return nil
}
