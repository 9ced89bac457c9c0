"""Make the schemas of this folder from the packages in which the platforms publish theirs.

Usage: ``pip install --target FOLDER kubeflow-spark-api databricks-bundles botocore-a-la-carte-emr-serverless``, then
``PYTHONPATH=FOLDER python data/schemas/extract.py FOLDER``; they were made of the versions 2.4.0, 1.22.1 and 1.34.144.
Of each, what a plan's export can hold is kept, with all names that are allowed there; what is below names that it never
holds is left open.
"""

import enum
import importlib
import json
import sys
import typing
from pathlib import Path

HERE = Path(__file__).parent
EMR = "botocore/data/emr-serverless/2021-07-13/service-2.json"
OPEN: dict = {}
LIMITS = {  # of the operator's types (api/v1beta2/sparkapplication_types.go), which the models leave out
    "cores": {"minimum": 1},
    "instances": {"minimum": 1},
    "mode": {"enum": ["cluster", "client"]},
    "pythonVersion": {"enum": ["2", "3"]},
}


def written(name, schema):
    text = json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=1, sort_keys=True)
    (HERE / f"{name}.json").write_text(text + "\n")


def kubeflow():
    """Write ``SparkApplication`` v1beta2, from the models made of the operator's own definition."""
    models = importlib.import_module("kubeflow_spark_api.models")
    below = {"spec", "driver", "executor", "deps", "restartPolicy"}

    def of(model):
        made = model.model_json_schema(by_alias=True)
        properties = {}
        for name, field in model.model_fields.items():
            alias = field.alias or name
            inner = next((one for one in typing.get_args(field.annotation) if hasattr(one, "model_fields")), None)
            inner = field.annotation if hasattr(field.annotation, "model_fields") else inner
            known = made["properties"][alias]
            plain = {key: known[key] for key in ("type", "anyOf", "items", "additionalProperties") if key in known}
            plain = {key: value for key, value in plain.items() if "$ref" not in json.dumps(value)}
            properties[alias] = of(inner) if alias in below and inner else plain | LIMITS.get(alias, {})
        required = made.get("required", [])
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    made = of(models.SparkV1beta2SparkApplication)
    spec = made["properties"]["spec"]["properties"]
    spec["type"] = {"enum": ["Java", "Python", "Scala", "R"]}
    spec["restartPolicy"]["properties"]["type"] = {"enum": ["Never", "Always", "OnFailure"]}
    written("spark_application", made)


def databricks():
    """Write a job, from the classes of Databricks' bundles, whose fields are those of the jobs API."""
    below = {"job_clusters", "new_cluster", "tasks", "spark_python_task", "libraries", "maven", "continuous"}

    def kind(annotation, name):
        if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
            return {"enum": [one.value for one in annotation]}
        for plain, word in ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "number")):
            if annotation is plain:
                return {"type": word}
        origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is list:
            return {"type": "array", "items": kind(inner[0], name)}
        if origin is dict:
            return {"type": "object", "additionalProperties": kind(inner[1], name)}
        if origin is not None and inner:  # a value or a variable, or none
            known = [one for one in inner if getattr(one, "__name__", "") not in ("Variable", "NoneType")]
            return kind(known[0], name)
        return of(annotation) if name in below and hasattr(annotation, "__dataclass_fields__") else OPEN

    def of(model):
        module = vars(sys.modules[model.__module__])
        hints = typing.get_type_hints(model, module)
        fields = model.__dataclass_fields__.values()
        empty = type(next(iter(fields)).default_factory)
        required = [one.name for one in fields if type(one.default) is empty and type(one.default_factory) is empty]
        properties = {name: kind(hint, name) for name, hint in hints.items()}
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    written("databricks_job", of(importlib.import_module("databricks.bundles.jobs").Job))


def emr_serverless(folder):
    """Write ``StartJobRun``, from the model of the service; the token that commands make themselves is not required."""
    shapes = json.loads((Path(folder) / EMR).read_text())["shapes"]
    unused = {"monitoringConfiguration", "hive", "tags"}
    kinds = {"long": "integer", "double": "number", "timestamp": "string"}

    def of(name, seen=()):
        shape = shapes[name]
        kind = shape["type"]
        if name in seen:
            return OPEN
        if kind == "structure":
            members = shape["members"].items()
            required = [one for one in shape.get("required", []) if not shape["members"][one].get("idempotencyToken")]
            properties = {key: OPEN if key in unused else of(one["shape"], (*seen, name)) for key, one in members}
            return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
        if kind == "map":
            key, value = of(shape["key"]["shape"]), of(shape["value"]["shape"])
            most = {"maxProperties": shape["max"]} if "max" in shape else {}
            return {"type": "object", "propertyNames": key, "additionalProperties": value, **most}
        if kind == "list":
            return {"type": "array", "items": of(shape["member"]["shape"], (*seen, name))}
        made = {"type": kinds.get(kind, kind)} | {key: shape[key] for key in ("enum",) if key in shape}
        if kind == "string":
            made |= {own: shape[key] for key, own in (("min", "minLength"), ("max", "maxLength")) if key in shape}
            if "pattern" in shape:
                made["pattern"] = f"^(?:{shape['pattern']})$"
        return made

    written("emr_serverless_job", of("StartJobRunRequest"))


if __name__ == "__main__":
    kubeflow()
    databricks()
    emr_serverless(sys.argv[1])
