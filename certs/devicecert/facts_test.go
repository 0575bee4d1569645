package devicecert

import (
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"folder of the identity (VEC-STOR-09)":               {FactoryDir, "factory/cloud"},
		"organization of a factory certificate (VEC-TOK-02)": {factoryOrganization, "Anki Inc."},
		"algorithm of the signature (VEC-TOK-02)":            {factoryAlgorithm, "sha256WithRSAEncryption"},
		"code of an invalid identity (VEC-TOK-08)":           {CodeFactory, "factory_identity"},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}
