package deploy

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-config-inspect/tfconfig"
	"github.com/zclconf/go-cty/cty"
)

// module is parsed Terraform.
type module struct {
	files  map[string]*hclsyntax.Body
	blocks map[string]*hclsyntax.Block // var.NAME, local.NAME, TYPE.NAME, data.TYPE.NAME, output.NAME
}

func parse(files map[string][]byte) (m module, diags hcl.Diagnostics) {
	m = module{map[string]*hclsyntax.Body{}, map[string]*hclsyntax.Block{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, bad := hclsyntax.ParseConfig(files[name], name, hcl.InitialPos)
		if diags = append(diags, bad...); bad.HasErrors() {
			continue
		}
		body := f.Body.(*hclsyntax.Body) // of ParseConfig
		m.files[name] = body
		for _, b := range body.Blocks {
			switch b.Type {
			case "variable":
				m.blocks["var."+b.Labels[0]] = b
			case "resource":
				m.blocks[strings.Join(b.Labels, ".")] = b
			case "data", "output":
				m.blocks[b.Type+"."+strings.Join(b.Labels, ".")] = b
			case "locals":
				for name := range b.Body.Attributes {
					m.blocks["local."+name] = b
				}
			}
		}
	}
	return m, diags
}

// dangling returns what the module refers to and lacks, with its place, and marks what is used.
func (m module) dangling() (bad []string, used map[string]bool) {
	used = map[string]bool{}
	for _, body := range m.files {
		_ = hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics {
			e, ok := n.(*hclsyntax.ScopeTraversalExpr)
			if !ok {
				return nil
			}
			var words []string
			for _, step := range e.Traversal {
				switch step := step.(type) {
				case hcl.TraverseRoot:
					words = append(words, step.Name)
				case hcl.TraverseAttr:
					words = append(words, step.Name)
				}
			}
			n2 := 2
			switch words[0] {
			case "data":
				n2 = 3
			case "path", "count", "each", "string", "list": // Terraform's own, and names of types
				return nil
			}
			key := strings.Join(words[:min(n2, len(words))], ".")
			used[key] = true
			if m.blocks[key] == nil {
				bad = append(bad, e.Range().String()+": "+key)
			}
			return nil
		})
	}
	return bad, used
}

// stringsOf returns the strings of a list expression; an expression inside one is written as "?".
func stringsOf(e hclsyntax.Expression) (out []string) {
	list, ok := e.(*hclsyntax.TupleConsExpr)
	if !ok {
		return nil
	}
	for _, x := range list.Exprs {
		text := ""
		if t, ok := x.(*hclsyntax.TemplateExpr); ok {
			for _, part := range t.Parts {
				if v, bad := part.Value(nil); !bad.HasErrors() && v.Type() == cty.String {
					text += v.AsString()
				} else {
					text += "?"
				}
			}
		} else {
			text = "?"
		}
		out = append(out, text)
	}
	return out
}

// broad returns what is too much in policy documents: an action with a *, every resource, a principal that is everyone but in a refusal.
func (m module) broad() (bad []string, statements int) {
	for _, key := range slices.Sorted(maps.Keys(m.blocks)) {
		if !strings.HasPrefix(key, "data.aws_iam_policy_document.") {
			continue
		}
		for _, s := range m.blocks[key].Body.Blocks {
			statements++
			refuses := false
			if e := s.Body.Attributes["effect"]; e != nil {
				v, _ := e.Expr.Value(nil)
				refuses = v.AsString() == "Deny"
			}
			actions := s.Body.Attributes["actions"]
			if actions == nil || len(stringsOf(actions.Expr)) == 0 {
				bad = append(bad, key+": a statement without a list of actions")
				continue
			}
			for _, a := range stringsOf(actions.Expr) {
				if strings.Contains(a, "*") || !strings.Contains(a, ":") {
					bad = append(bad, key+": action "+a)
				}
			}
			if r := s.Body.Attributes["resources"]; r != nil && slices.Contains(stringsOf(r.Expr), "*") {
				bad = append(bad, key+": every resource")
			}
			for _, p := range s.Body.Blocks {
				if p.Type == "principals" && !refuses && slices.Contains(stringsOf(p.Body.Attributes["identifiers"].Expr), "*") {
					bad = append(bad, key+": everyone")
				}
			}
		}
	}
	return bad, statements
}

func readAWS(t *testing.T) module {
	t.Helper()
	files := map[string][]byte{}
	all, err := filepath.Glob("aws/*.tf")
	if err != nil || len(all) == 0 {
		t.Fatalf("%v, %v", all, err)
	}
	for _, f := range all {
		if files[f], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	m, diags := parse(files)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return m
}

// TestTerraform: the files are HCL that Terraform's own reader takes, each reference leads to something in them, each variable is used, and no policy says
// more than it must.
func TestTerraform(t *testing.T) {
	m := readAWS(t)
	if mod, diags := tfconfig.LoadModule("aws"); diags.HasErrors() || len(mod.ManagedResources) < 15 || mod.RequiredProviders["aws"] == nil {
		t.Errorf("%v: %d resources", diags, len(mod.ManagedResources))
	}
	bad, used := m.dangling()
	if len(bad) > 0 {
		t.Errorf("refer to nothing: %v", bad)
	}
	for key := range m.blocks {
		if strings.HasPrefix(key, "var.") && !used[key] {
			t.Errorf("%s is not used", key)
		}
	}
	broad, statements := m.broad()
	if len(broad) > 0 || statements < 9 {
		t.Errorf("%d statements; too broad: %v", statements, broad)
	}
	for _, file := range []string{"rules.json", "thing-policy.json", "service-policy.json"} {
		b, err := os.ReadFile(filepath.Join("aws/../../mqtt/brokeradmin/awsiot/testdata", file))
		if err != nil || strings.Contains(file, "policy") && !strings.Contains(string(b), "arn:aws:iot:eu-central-1:123456789012") {
			t.Errorf("%s: %v, or without the account that broker.tf replaces", file, err)
		}
	}
	// Without these a mistake loses or shows data.
	for key, want := range map[string]map[string]bool{
		"aws_rds_cluster.database":                  {"storage_encrypted": true, "deletion_protection": true, "manage_master_user_password": true, "skip_final_snapshot": false},
		"aws_s3_bucket_public_access_block.objects": {"block_public_acls": true, "block_public_policy": true, "ignore_public_acls": true, "restrict_public_buckets": true},
		"aws_sqs_queue.uplink":                      {"sqs_managed_sse_enabled": true},
		"aws_kms_key.data":                          {"enable_key_rotation": true},
	} {
		for name, v := range want {
			a := m.blocks[key].Body.Attributes[name]
			if a == nil {
				t.Errorf("%s lacks %s", key, name)
			} else if got, _ := a.Expr.Value(nil); got != cty.BoolVal(v) {
				t.Errorf("%s: %s is %#v", key, name, got)
			}
		}
	}
}

// TestTerraformRefuses: what the checks above are for.
func TestTerraformRefuses(t *testing.T) {
	const policy = "data \"aws_iam_policy_document\" \"x\" {\n statement {\n %s\n }\n}\n"
	for name, tc := range map[string]struct{ text, want string }{
		"a resource that is not there": {"output \"a\" {\n value = aws_s3_bucket.b.arn\n}\n", "aws_s3_bucket.b"},
		"a variable in a template":     {"output \"a\" {\n value = \"x-${var.nothing}\"\n}\n", "var.nothing"},
		"every action":                 {strings.Replace(policy, "%s", `actions = ["*"]`, 1), "action *"},
		"every action of a service":    {strings.Replace(policy, "%s", `actions = ["s3:*"]`, 1), "action s3:*"},
		"actions beginning with Get":   {strings.Replace(policy, "%s", `actions = ["s3:Get*"]`, 1), "action s3:Get*"},
		"actions from elsewhere":       {strings.Replace(policy, "%s", `actions = var.all`, 1), "without a list"},
		"every resource":               {strings.Replace(policy, "%s", "actions = [\"s3:GetObject\"]\nresources = [\"*\"]", 1), "every resource"},
		"everyone":                     {strings.Replace(policy, "%s", "actions = [\"s3:GetObject\"]\nprincipals {\nidentifiers = [\"*\"]\n}", 1), "everyone"},
		"no HCL":                       {"output {\n", "no-hcl"},
	} {
		m, diags := parse(map[string][]byte{"x.tf": []byte(tc.text)})
		if diags.HasErrors() {
			if tc.want != "no-hcl" {
				t.Errorf("%s: %v", name, diags)
			}
			continue
		}
		bad, _ := m.dangling()
		more, _ := m.broad()
		if !strings.Contains(strings.Join(append(bad, more...), "\n"), tc.want) {
			t.Errorf("%s: %v, %v, want %q", name, bad, more, tc.want)
		}
	}
}
