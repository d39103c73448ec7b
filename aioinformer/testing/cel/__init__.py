"""The part of the Common Expression Language (CEL) that validation rules of custom resources use."""
