// Package blob keeps large things in S3: update archives, crash dumps, logs. It is the only package that speaks the AWS SDK for it.
//
// Keys are paths with slashes whose first part names the owner, such as "ota/..." or "crash/...". Robots never get a key of the bucket:
// they get presigned URLs, each good for one object, one method and a short time.
package blob
