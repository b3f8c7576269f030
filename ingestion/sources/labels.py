"""The words that API documents are rendered with, in both languages."""

from dataclasses import dataclass

from schemas.choices import Language
from schemas.document import SectionKind


@dataclass(frozen=True)
class SectionLabels:
    """Section titles by kind, column titles by table, and the few words between."""

    sections: dict[SectionKind, str]
    parameter_columns: tuple[str, str, str, str, str]
    """Name, type, required, description, example."""
    location_column: str
    error_columns: tuple[str, str, str, str]
    """Code, message, cause, remedy."""
    permission_columns: tuple[str, str]
    yes: str
    no: str
    method: str
    url: str
    version: str
    service: str
    deprecated: str
    values: str
    request_example: str
    response_example: str
    servers: str
    default: str
    range: str
    length: str
    count: str
    pattern: str
    nullable: str
    deprecated_parameter: str
    see_above: str
    left_out: str
    see: str
    stop: str
    """What ends a sentence."""
    either: str
    no_access: str


LABELS: dict[Language, SectionLabels] = {
    "zh": SectionLabels(
        sections={
            "request_headers": "请求头",
            "request_url": "请求地址",
            "public_parameters": "公共参数",
            "request_parameters": "请求参数",
            "response_parameters": "返回参数",
            "error_codes": "错误码",
            "permission_package": "权限包",
        },
        parameter_columns=("名称", "类型", "必填", "说明", "示例"),
        error_columns=("错误码", "错误信息", "原因", "解决办法"),
        permission_columns=("权限包", "说明"),
        location_column="位置",
        yes="是",
        no="否",
        method="请求方法",
        url="接口地址",
        version="版本",
        service="所属服务",
        deprecated="该接口已废弃。",
        values="可选值",
        request_example="请求示例",
        response_example="返回示例",
        servers="服务器地址",
        default="默认值",
        range="取值范围",
        length="长度",
        count="元素个数",
        pattern="格式",
        nullable="可为 null",
        deprecated_parameter="（已废弃）",
        see_above="……结构同上",
        left_out="……其余字段从略",
        see="参见",
        stop="。",
        either="满足其中一种即可：",
        no_access="也可以不带凭证调用",
    ),
    "en": SectionLabels(
        sections={
            "request_headers": "Request headers",
            "request_url": "Request URL",
            "public_parameters": "Public parameters",
            "request_parameters": "Request parameters",
            "response_parameters": "Response parameters",
            "error_codes": "Error codes",
            "permission_package": "Permission package",
        },
        parameter_columns=("Name", "Type", "Required", "Description", "Example"),
        error_columns=("Error code", "Message", "Cause", "Remedy"),
        permission_columns=("Permission package", "Description"),
        location_column="In",
        yes="Yes",
        no="No",
        method="Method",
        url="API URL",
        version="Version",
        service="Service",
        deprecated="This API is deprecated.",
        values="Values",
        request_example="Request example",
        response_example="Response example",
        servers="Server",
        default="Default",
        range="Range",
        length="Length",
        count="Items",
        pattern="Pattern",
        nullable="may be null",
        deprecated_parameter="(Deprecated.)",
        see_above="…see above",
        left_out="…further fields are left out",
        see="See",
        stop=".",
        either="One of these is enough:",
        no_access="may be called without credentials too",
    ),
}
