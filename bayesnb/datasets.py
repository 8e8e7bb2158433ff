"""Small real data sets that are part of the package."""

from __future__ import annotations

from sklearn.utils import Bunch

from bayesnb._util.arguments import require_choice

_DESCR = """The watermelon table, version 3.0.

17 watermelons. Categorical: 色泽 (colour), 根蒂 (root), 敲声 (sound when knocked), 纹理 (texture),
脐部 (umbilicus), 触感 (touch). Continuous: 密度 (density), 含糖率 (sugar content). Class: 好瓜 (good
melon), 是 (yes, 8 rows) or 否 (no, 9 rows).

Zhou Zhihua, *Machine Learning* (机器学习), Tsinghua University Press (2016); English: Springer (2021),
table 4.3; `load_watermelon(language="en")` has names and values in English.
The table is a textbook's example, too small to estimate how well any classifier does.
"""

_CATEGORICAL = ("色泽", "根蒂", "敲声", "纹理", "脐部", "触感")
_CONTINUOUS = ("密度", "含糖率")

_ROWS = """
青绿 蜷缩 浊响 清晰 凹陷 硬滑 0.697 0.460 是
乌黑 蜷缩 沉闷 清晰 凹陷 硬滑 0.774 0.376 是
乌黑 蜷缩 浊响 清晰 凹陷 硬滑 0.634 0.264 是
青绿 蜷缩 沉闷 清晰 凹陷 硬滑 0.608 0.318 是
浅白 蜷缩 浊响 清晰 凹陷 硬滑 0.556 0.215 是
青绿 稍蜷 浊响 清晰 稍凹 软粘 0.403 0.237 是
乌黑 稍蜷 浊响 稍糊 稍凹 软粘 0.481 0.149 是
乌黑 稍蜷 浊响 清晰 稍凹 硬滑 0.437 0.211 是
乌黑 稍蜷 沉闷 稍糊 稍凹 硬滑 0.666 0.091 否
青绿 硬挺 清脆 清晰 平坦 软粘 0.243 0.267 否
浅白 硬挺 清脆 模糊 平坦 硬滑 0.245 0.057 否
浅白 蜷缩 浊响 模糊 平坦 软粘 0.343 0.099 否
青绿 稍蜷 浊响 稍糊 凹陷 硬滑 0.639 0.161 否
浅白 稍蜷 沉闷 稍糊 凹陷 硬滑 0.657 0.198 否
乌黑 稍蜷 浊响 清晰 稍凹 软粘 0.360 0.370 否
浅白 蜷缩 浊响 模糊 平坦 硬滑 0.593 0.042 否
青绿 蜷缩 沉闷 稍糊 稍凹 硬滑 0.719 0.103 否
"""

_ENGLISH = {
    "色泽": ("colour", {"青绿": "green", "乌黑": "dark", "浅白": "light"}),
    "根蒂": ("root", {"蜷缩": "curly", "稍蜷": "slightly curly", "硬挺": "straight"}),
    "敲声": ("sound", {"浊响": "muffled", "沉闷": "dull", "清脆": "crisp"}),
    "纹理": ("texture", {"清晰": "clear", "稍糊": "slightly blurry", "模糊": "blurry"}),
    "脐部": ("umbilicus", {"凹陷": "hollow", "稍凹": "slightly hollow", "平坦": "flat"}),
    "触感": ("touch", {"硬滑": "hard", "软粘": "soft"}),
    "密度": ("density", {}),
    "含糖率": ("sugar", {}),
    "好瓜": ("ripe", {"是": "yes", "否": "no"}),
}


def load_watermelon(language: str = "zh") -> Bunch:
    """Return the watermelon table of Zhou's *Machine Learning*: 17 rows, two classes.

    Parameters
    ----------
    language : {"zh", "en"}, default "zh"
        Language of the names of columns and values: those of the Chinese book, or English ones.

    Returns
    -------
    Bunch
        data : DataFrame (17, 8), six columns of strings and two of floats (density and sugar content are fractions of
        one); target : Series (17,) named 好瓜, with the classes 是 and 否, or named ripe, with the classes yes and no;
        feature_names : list of str; DESCR : str, with the citation.

    Raises
    ------
    ValueError
        If `language` is neither "zh" nor "en".

    Examples
    --------
    >>> from bayesnb.datasets import load_watermelon
    >>> load_watermelon().data.shape
    (17, 8)
    >>> load_watermelon(language="en").data.iloc[0, :4].to_dict()
    {'colour': 'green', 'root': 'curly', 'sound': 'muffled', 'texture': 'clear'}
    """
    import pandas as pd

    require_choice("language", language, ("zh", "en"))
    names, target = [*_CATEGORICAL, *_CONTINUOUS], "好瓜"
    table = pd.DataFrame([row.split() for row in _ROWS.split("\n") if row], columns=[*names, target])
    table = table.astype(dict.fromkeys(_CONTINUOUS, float))
    if language == "en":
        table = table.replace({name: values for name, (_, values) in _ENGLISH.items() if values})
        table.columns = [_ENGLISH[name][0] for name in table.columns]
        *names, target = table.columns
    return Bunch(data=table[names], target=table[target], feature_names=names, DESCR=_DESCR)


__all__ = ["load_watermelon"]
