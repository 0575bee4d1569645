package stsapi_test

import (
	"bytes"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"kennel/cloud/originals/stsapi"
	"kennel/infra/blob"
)

// BenchmarkUpload sends 64 MiB straight to the gateway and through the door (TLS, signature and digests checked), in the same run.
func BenchmarkUpload(b *testing.B) {
	const size = 64 << 20
	r := newRig(b, func(c *stsapi.Config) { c.MaxDay = 1 << 40 })
	body := content(size)
	b.Run("straight", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			if _, err := r.store.PutOnce(b.Context(), "straight", bytes.NewReader(body), size, blob.PutOptions{}, blob.Digests{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	c := r.v2(r.mint(b, robot))
	b.Run("door", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			if _, err := c.PutObject(b.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String(folder + "x"), Body: bytes.NewReader(body)}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
