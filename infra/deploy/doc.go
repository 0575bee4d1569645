// Package deploy holds Kennel's deployment as code for machines that others run: manifests for Kubernetes and Terraform for AWS. It is files and their
// tests: the manifests are decoded strictly into the types of the Kubernetes API, and the references of the Terraform are followed (decision 0061).
// Neither was ever started by the tests; README.md says what that leaves open.
package deploy
