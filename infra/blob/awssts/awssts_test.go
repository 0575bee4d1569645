package awssts_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kennel/infra/awsconfig"
	"kennel/infra/blob/awssts"
	"kennel/infra/errs"
)

// The answer as the AWS STS API reference prints it for AssumeRole, with other keys.
const answer = `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/demo/vic-00e20100</Arn><AssumedRoleId>ARO123EXAMPLE123:vic-00e20100</AssumedRoleId></AssumedRoleUser>
<Credentials><AccessKeyId>ASIAIOSFODNN7EXAMPLE</AccessKeyId><SecretAccessKey>wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKEY</SecretAccessKey>
<SessionToken>AQoDYXdzEPT</SessionToken><Expiration>2026-11-22T02:00:00Z</Expiration></Credentials>
<PackedPolicySize>6</PackedPolicySize></AssumeRoleResult><ResponseMetadata><RequestId>c6104cbe</RequestId></ResponseMetadata></AssumeRoleResponse>`

const refusal = `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>%s</Code><Message>no</Message></Error><RequestId>x</RequestId></ErrorResponse>`

// TestAssumeRole holds the client against answers as AWS documents them; AWS itself is not asked.
func TestAssumeRole(t *testing.T) {
	var asked url.Values
	status, body := http.StatusOK, answer
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		asked = r.PostForm
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	defer srv.Close()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("KEY\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := awssts.Open(t.Context(), awssts.Config{Role: "arn:aws:iam::123456789012:role/demo",
		AWS: awsconfig.Config{Region: "us-west-2", Endpoint: srv.URL, AccessKeyFile: key, SecretKeyFile: key}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.AssumeRole(t.Context(), "vic-00e20100", `{"a":1}`, 12*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	want := awssts.Credentials{AccessKeyID: "ASIAIOSFODNN7EXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKEY", SessionToken: "AQoDYXdzEPT",
		Expires: time.Date(2026, 11, 22, 2, 0, 0, 0, time.UTC)}
	if got != want || fmt.Sprintf("%v %+v %#v", got, got, got) != "[secret] [secret] [secret]" {
		t.Errorf("credentials are others, or show themselves")
	}
	for k, v := range map[string]string{"Action": "AssumeRole", "DurationSeconds": "43200", "RoleArn": "arn:aws:iam::123456789012:role/demo",
		"RoleSessionName": "vic-00e20100", "Policy": `{"a":1}`} {
		if asked.Get(k) != v {
			t.Errorf("asked %s=%q, want %q", k, asked.Get(k), v)
		}
	}
	for _, tc := range []struct {
		status int
		code   string
		kind   errs.Kind
	}{{403, "AccessDenied", errs.Internal}, {400, "PackedPolicyTooLarge", errs.Internal}, {503, "ServiceUnavailable", errs.Unavailable}} {
		status, body = tc.status, fmt.Sprintf(refusal, tc.code)
		if _, err := c.AssumeRole(t.Context(), "vic-00e20100", "{}", time.Hour); err == nil || errs.KindOf(err) != tc.kind {
			t.Errorf("%s: %v, want kind %v", tc.code, err, tc.kind)
		}
	}
	status, body = http.StatusOK, `<AssumeRoleResponse><AssumeRoleResult/></AssumeRoleResponse>`
	if _, err := c.AssumeRole(t.Context(), "vic-00e20100", "{}", time.Hour); err == nil {
		t.Error("an empty answer was taken")
	}
	if _, err := awssts.Open(t.Context(), awssts.Config{}); errs.KindOf(err) != errs.Invalid {
		t.Errorf("without a role: %v", err)
	}
}
