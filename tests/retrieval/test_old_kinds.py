"""Old Word files, presentations, texts with a byte order mark, and control characters in words."""

from __future__ import annotations

import io
import lzma
import zipfile
from base64 import b85decode
from pathlib import Path

import pytest

from pyrag.errors import DataError
from pyrag.retrieval.documents.controls import without_controls
from pyrag.retrieval.documents.find import find_documents
from pyrag.retrieval.documents.formats.office import with_slides
from pyrag.retrieval.documents.formats.open_slides import odp_markdown
from pyrag.retrieval.documents.opened_document import opened
from pyrag.retrieval.documents.reading import Columns, read_opened, read_passages
from pyrag.retrieval.index import open_index, update_index
from pyrag.trace.model import Passage

OLD = (  # a .doc by LibreOffice: heading, paragraph, table, heading, paragraph, and a page header
    "{Wp48S^xk9=GL@E0stWa8~^|S5YJf5;7k7tw_N~eGrk;#Fn3_|q=YHL-W+x(g7T4u+=$92yB`&@$~pc8Ovb{xn21K)k_pnwaWB)_vrPa#j9W#?"
    "O5!`h2|K9g%!sixRAHqklT2=8ngFP!^s=Cv{|I%yzIf(SM7~rAOE20G81W15?t#?l0ElzU1bD%X6+3gBRlTrpelWJ!C*Ih;t8dO(kG<dE4H=u7"
    "x!EU4hGtb{$q}Fmo&2<noiK@%W((O;Itq?{JX5UC1;9|9m;HSE6pA*IbyB=B(ncadoMq}<Vk~I=r1a6f9#*nmS~wz1pfhabB8dCW)?<*UQ0pT>"
    "JN=ox@vLw5unn5AM41oe{B!9j+#!JVsm&L$Lv{h1=5M}~)Jm}bhx%rW&W#JdurRhIQ`GMBh8!H6nk?paq_I##R5`?*tKN~~xXx1{97LL;HHin$"
    "JuL4{B=0wYWj3PTmTWtx$SKc|PL-9Y2&GcK+1k{N+E-6I&M5v~xq+?W39bTba;c%CQi|8>NQIAska}v;A+b*eeh@Dt9uu6P9~<K7sqByjTUds&"
    "Bt^D5Q2p^SM9JC&#1cj}K&_9)c7yBQE^ilQ5*aS;iMk@7yBsDZ%Urqir_d=aKwQgKxcth6N<n-UW%$AVSnN{ol?Mv~o7U=MhyM_Jv7(PLUDp2m"
    "brCTa2Peq519J?e%fE7}l_ewdqn_&IH*h>nTRB3I7AU0fW*D0U!a+8P)o^{_u+|W(H`$iTo{&{Ce*Dw^68Wt?wM-&L>6$JB+Zv+sq<o$w8~|RT"
    "*FS1=4zhdlPH=gh8AW<zlklCV9Jn5Q3if5-n$_tIGtF*@XAc2UJ?2EF-8g!NlXHX&4Az(G0>r)-UyrnP$lLXGsxxJxoRvH%@2@oZ|2?y0#GFvX"
    "{@RH~s5oJB4gHvhRhfcfc$c3vF(ZOBkPYmejdAHO>GLmfdaaibFXLOS6%mP`J)maT!G*uXc_Um4VDD>OsR(ESp?OMntOv`}Lo4=aq_$}5nqv{s"
    "K$f5jNtwqWd&{pnp0t9}*>{P-GryQX)0q7wTL)^tX>09@NJROXs^&9g%_{Hhnr51+<>rKNP8Bk%NAL~2Zf2py%7^AGQ!kw2PbjEIy^aK9(BEa4"
    "v2xJb`%@uv@;pG-l&b^Yr8feP&G7UI5sKC7l=W7+>%9X;|K2PW9RFJ9xCd{dLn`n$m7lo^M!=LLNzliEXkKz=ALJ=SB)_wB83y}8FEi{>ifqu%"
    "By0|wxu5z1K~cUGaBFfW+BZch76RPJ6RpH&=EHk^JM~b(oUTZh0XRLAC<du7^C6+HfIvf0-@Egix0v$yDTMj6i9n8&B202t34`g@E4URZ|F(@;"
    "|HN35P%l2eD&!3I+!NV2SPj#dYJrYDmokG4o0-7~%Ge6V39F_77OCPdbksh4&$gH~3`!t(uc)rq{hy1d_@QY$HGF-uk&s!(HGeH%CCYPqbZBx`"
    "aZEfWVqDHUXBAzyQlKL5mcT+>GTr3;Ss^L+$?x@{nLJRft_z`4@T6+dE1Z@oZ6}6&gYLGRk!FLQ*ye;zXU$)=272`4VV+{wV=U~<78P5$4PDw4"
    "5xQ}ZV9HITK1}nkRwuV!a*{|KNZ`=A>n8w6R$-QN{j;|cHNfnnMk%$yo$kyW&5NM4*lxvVVL3ireXqkheaZU!<|+1WKIZR3TOHj(SpyB91Hx-v"
    "fcA6wzRr(<r?z@mEAj`TYldxSy=E)U!?531Y(p_nkQ3!(SalAKTL!qr#mPY#xQa&0Mk2JLCH{!>(gh-vZZYpZU#)PL8$M%=pAXKngY*t|@4yvp"
    "a&qg7%aU=7yzT5}BIwQ62@3WA0z^4&a7|XrLJJe8divIStT%KtH+hrMJgYg~&QnuDq*KT9pG*5$h;6q#I)~80z|S!3<FF(@#`ya)ad);Yac(Jn"
    "Z?<uxY9#fl)s~Wn?`ECb1a|~!^Yl3Vf;@tFG2`cTbv&Vgb<yqZkZ!Wv5a37CrjSh%Q=MKEBsxFlKxp<c%GXe*8X=+#+f#{*5c|_rmF%bLA&V4}"
    "_uZx`mO&XKZ@0_2LJVZYh!3!iwLL{0WgUO8H|vYgQ-NEM0&e0o{f<STaYg|WM=dZov?O^>BPoYN)LoO_9zNdDO(2J*pI^YKuwEcl-BO6~Gd;_T"
    "xfm2BgGwL*`;|T&ZnjNSh9@ojKas`Fxg94A;+EHsWS03af>z^c%g6R^!)TjG0Vkk$%zWCCmMP@OWa=GC2H@ITYUb8v_K1R}p!o1;1no!O!Yz%^"
    "SZXNVeM~`=O&uzbLBPL%63k~&&ZUA<1Ubu--aR=nIf4<1sN8)bj|6Ex{J7u7*g~z^BbB!)1mLcL_}woHY*z>8z<BkB*7b<W==P@H>+hiAo~seL"
    "n^_22FyAN6UcHJdtIcFB`h~{${6xWuA3pTbqgCs=yL*aFqhG9Tz9db#*au5ZAxpqyH3CzAvC1$IxmgZ74(4dX+O->lHfDu1-4FEVBSX<^$a@gp"
    "_Da@`PR{MTiS`%uKi*FL+mgL$?DzA?dl8(<5#+$IlYE#L2^V|kMxo{<k{pqJI*JT>CDije1NSe@zIwpDAJteUwa>;jny9bsrN75J=AM^*eTyp;"
    "@Fmp}gLW>KD(cs2yg&@GXQAt4dvTII9GT-qVulo2%CoIS@LP4tnxEQ({R~sM{xo!H#7C1F!pR3*D`kcdYTPVd^ZlAgGY~ZR3@}#E;?~;4r>Xqi"
    "lc8R$B~!G97-k4I`kQMom`IL6!LJ{kI@1~r&~I5?q2OLa@Sy|&yMQB;;$RME<7-AIDNB-$@>5!Mh9?}AD5Tr25KtyoYvR+>UC%lc#7}GK5IRNt"
    "2xcgbh!T&H!t*|Jb(>cS!W63>*=+>%iE`k>lKgLQcjc(WYvdhrsmDBD@QZm12|yU?MSG3Em6%B-x3!cju)mUS6HzLs<5Be^y+8@Iw&=zehIG~9"
    "qpLIA8<y9-UPQ;o0Ygn4p<Yacy^9Ns0od3Paqm=mp@BUoGoSy(hIvYoWCXqbGd6)MJ^jRMn*;lBV(IT)syDzvymcT@VN2Ja@N{V_Fui{=*q9o="
    "HQSW4Ol+xNS^2BQ%-;6WFQgZFX;*B-_hn((+E85T!ajB%ak0MreU^&d0EMr?oAk+FEs-A)T3={-O`qH|PlR({wO`m(S*Y8~rj-r(H%i_ng^;90"
    "hH}qv^YL69d;T=@e^<8pk(lpzbGyqv=3OhAb2@j0o4C&*_Leob#bHiDziEOf#ZO%I^2mDvdCj2P;?TL?;=;0#yJI{&sO*Y^p+R9>+Au#l7!m7H"
    "hauDnOY0uHIziQFbBdVIMteJ8CF6rO6t!*o4z`!g5b=D0*>jSZ6>a%YPdVMztmw&|8qs9rvMa&`g5PgZ)(3RR`al|TJoM1d0r<2xop_?b?-Tp6"
    "PlvjQ$$?;<JEW+jCU^aObCom+-DQ_0sVeOBgejbD8|}*Bc_#WkE*bwX;ZAX~|8FYn26Pbu&*NU9J(U&R;8x#9g|p};>5@PWpa$izhJ<h*ltVBy"
    "snre&@wM&Gt%@%eIani1tMnM6`70qXm0GZFo3o&v0m(O{+bcA0lz#2k3Nc*d$P$7^c=J|!>)1%3Ml8@qdMbcBEM|r!pU}xdU%#Vuux?@o>j=+K"
    "D^juPf$d4C1y@@ICFSgi^|0EiTugDTu!JZdRZn|Bc5I{0?$a2NX}^{5*Lkd4WN74DnQQ~9#!@0A$(@+QsV<Zg3<_=_h}u0SqALm&$r_wYq$u4r"
    "l|7AYM%*EXwA@(l)a8N-g0n2ow4<{569dCZk`y?;*9ZZo%=F>OZ+eH^4$v#|1Bfm=ERUI=ak@xzIst8d0lAT>u{xu4z#+O~$PY`uW)Lb5$L^+I"
    "shI|@e1mbWX<sueTk8l0P=Sl`VIFl(7j%U6Ya*<Of&$yUhB*KL$A>fVePI{C00Gk%fS3UQ{GWY-vBYQl0ssI200dcD"
)
NAMESPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{rest}:1.0"'
    for name, rest in (
        ("office", "office"),
        ("draw", "drawing"),
        ("text", "text"),
        ("table", "table"),
        ("presentation", "presentation"),
    )
)
SLIDES = f"""<office:document-content {NAMESPACES}><office:body><office:presentation>
<draw:page>
<draw:frame presentation:class="title"><draw:text-box><text:p>Har<text:s/>vest</text:p></draw:text-box></draw:frame>
<draw:frame><draw:text-box><text:list><text:list-item><text:p>Wheat</text:p><text:list><text:list-item>
<text:p>in July</text:p></text:list-item></text:list></text:list-item></text:list></draw:text-box></draw:frame>
<draw:frame><table:table><table:table-row><table:table-cell><text:p>Field</text:p></table:table-cell><table:table-cell>
<text:p>Tons</text:p></table:table-cell></table:table-row><table:table-row><table:table-cell/><table:table-cell>
<text:p>4|1</text:p></table:table-cell></table:table-row></table:table></draw:frame>
<presentation:notes><draw:frame><draw:text-box><text:p>Tell it.</text:p></draw:text-box></draw:frame>
</presentation:notes>
</draw:page><draw:page><draw:g><draw:custom-shape><text:p>The barn<office:annotation><text:p>Really?</text:p>
</office:annotation> is old.</text:p></draw:custom-shape></draw:g><draw:frame><draw:object/></draw:frame></draw:page>
</office:presentation></office:body></office:document-content>"""


def read(path: Path, data: bytes) -> tuple[list[Passage], list[str]]:
    path.write_bytes(data)
    (document,) = find_documents([path])
    with opened(document) as file:
        return [placed.passage for placed in read_opened(file, Columns())], file.remarks


def packed(**members: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("META-INF/manifest.xml", members.get("manifest", "<manifest/>"))
        if "content" in members:
            archive.writestr("content.xml", members["content"])
    return buffer.getvalue()


def test_old_word_files_keep_headings_and_rows(tmp_path: Path) -> None:
    pytest.importorskip("xberg")
    pytest.importorskip("olefile")
    data = lzma.decompress(b85decode("".join(OLD)))
    passages, remarks = read(tmp_path / "a.doc", data)
    assert [(passage.title, passage.text) for passage in passages] == [
        ("Harbour charter", "The harbour of Łódź was opened in 1921.\nBerth Depth\nB1 7.5 m"),
        ("Harbour charter > Rules", "Ships pay 40 crowns."),
    ]
    assert remarks[1] == "left out: page headers and footers"
    assert "save it as .docx" in remarks[0]
    at = data.index(b"\xec\xa5")
    locked = data[: at + 11] + bytes([data[at + 11] | 1]) + data[at + 12 :]
    for content, message in (
        (locked, "needs a password"),
        (data.replace(b"\xec\xa5\x01\x01", b"\xec\xa5\x68\0"), "is older than Word 97"),
        (data[:512], "is broken"),
        (b"words", "cannot be read|is broken"),
    ):
        with pytest.raises(DataError, match=message):
            read(tmp_path / "b.doc", content)


def test_renamed_documents_are_read_as_what_they_are(tmp_path: Path) -> None:
    pytest.importorskip("xberg")
    passages, _ = read(tmp_path / "a.doc", rb"{\rtf1 The otter mill.\par}")
    assert "The otter mill." in passages[0].text


def test_each_slide_of_an_old_presentation_has_a_heading() -> None:
    text = "-----\n\n## Plan\n\nWheat\n\n-----\n\nThe barn.\n"
    assert with_slides(text) == "## Plan\n\nWheat\n\n## Slide 2\n\nThe barn."


def test_slides_keep_shapes_lists_and_tables(tmp_path: Path) -> None:
    passages, remarks = read(tmp_path / "a.odp", packed(content=SLIDES))
    assert [(passage.title, passage.text) for passage in passages] == [
        ("Har vest", "- Wheat\n  - in July\n| Field | Tons |\n|---|---|\n|  | 4\\|1 |"),
        ("Slide 2", "The barn is old."),
    ]
    assert remarks == ["left out: charts and other objects, comments, speaker notes"]


def test_a_wide_row_does_not_widen_the_others() -> None:
    wide, narrow = "<table:table-cell/>" * 2000, "<table:table-row><table:table-cell/></table:table-row>" * 2000
    table = f"<table:table><table:table-row>{wide}</table:table-row>{narrow}</table:table>"
    content = f"<a {NAMESPACES}><draw:page>{table}</draw:page></a>"
    assert len(odp_markdown(packed(content=content), "a.odp", [])) < len(content)


def slide_table(rows: str) -> str:
    page = f"<draw:page><table:table>{rows}</table:table></draw:page>"
    return f"<office:document-content {NAMESPACES}>{page}</office:document-content>"


def test_repeated_cells_of_slides_keep_their_columns(tmp_path: Path) -> None:
    cell = "<table:table-cell{}><text:p>{}</text:p></table:table-cell>"
    row = cell.format(' table:number-columns-repeated="2"', "x") + cell.format("", "y")
    (passage,), _ = read(
        tmp_path / "a.odp", packed(content=slide_table(f"<table:table-row>{row}</table:table-row>" * 2))
    )
    assert passage.text.splitlines()[0] == "| x | x | y |"


def test_tables_of_slides_with_a_long_row_are_read(tmp_path: Path) -> None:
    rows = f"<table:table-row>{'<table:table-cell/>' * 20_000}</table:table-row>{'<table:table-row/>' * 20_000}"
    passages, _ = read(tmp_path / "a.odp", packed(content=slide_table(rows)))
    assert sum(len(passage.text) for passage in passages) < 1_000_000


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"words", "cannot be read as a presentation"),
        (packed(), "is not a presentation"),
        (packed(content="<a>"), "cannot be read as a presentation"),
        (packed(content="<a/>", manifest="<manifest:encryption-data/>"), "needs a password"),
    ],
)
def test_broken_presentations_are_named(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path / "a.odp", data)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".txt", "The mill of Łódź.\n"),
        (".md", "# Mill\n\nThe mill of Łódź.\n"),
        (".csv", "title,text\nmill,Łódź\n"),
        (".json", '[{"text": "The mill of Łódź."}]'),
        (".vcf", "BEGIN:VCARD\nFN:Łódź\nTEL:1\nEND:VCARD\n"),
        (".bib", "@book{a, title = {Łódź}}"),
    ],
)
def test_texts_with_a_mark_need_no_encoding(tmp_path: Path, encoding: str, suffix: str, text: str) -> None:
    passages, _ = read(tmp_path / f"a{suffix}", text.encode(encoding))
    assert "Łódź" in passages[0].text
    (tmp_path / f"a{suffix}").unlink()
    again, _ = read(tmp_path / f"a{suffix}", text.encode())
    assert [(passage.text, passage.start, passage.end) for passage in passages] == [
        (passage.text, passage.start, passage.end) for passage in again
    ]


@pytest.mark.parametrize("suffix", [".csv", ".ics", ".vcf", ".bib", ".md"])
def test_texts_with_zero_bytes_are_refused(tmp_path: Path, suffix: str) -> None:
    text = "title,text\nBEGIN:VCARD\nFN:Bo\nEND:VCARD\n".encode("utf-16-le")  # without a byte order mark
    with pytest.raises(DataError, match=r"not text \(a zero byte\): .* or add --encoding"):
        read(tmp_path / f"a{suffix}", text)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("mi\x1fll", "mi\u00adll"),
        ("non\x1estop", "non\u2011stop"),
        ("a\x1cb", "a b"),
        ("mi\x02ll\x7f", "mi\u200bll\u200b"),
        ("don\x92t \x80 5 \x81", "don’t € 5 \u200b"),
        ("\x1b[31mred\x1b[0m", f"{5 * chr(0x200B)}red{4 * chr(0x200B)}"),
        ("tab\tline\nfeed\fnext\x85end\r\n", "tab\tline\nfeed\fnext\x85end\r\n"),
    ],
)
def test_control_characters_keep_words_and_lengths(written: str, expected: str) -> None:
    assert without_controls(written) == expected
    assert len(expected) == len(written)


@pytest.mark.parametrize(
    ("suffix", "form"),
    [
        (".txt", "{} is old.\n"),
        (".md", "# Mill\n\n{} is old.\n"),
        (".json", '[{"text": "{} is old."}]'),
        (".csv", "name,state\n{},old\n"),
        (".vcf", "BEGIN:VCARD\nFN:{}\nTEL:1\nEND:VCARD\n"),
        (".eml", "Subject: Mill\n\n{} is old.\n"),
    ],
)
def test_words_with_control_characters_are_found(tmp_path: Path, suffix: str, form: str) -> None:
    (tmp_path / "notes").mkdir()
    word = "wind\\u001fmill" if suffix == ".json" else "wind\x1fmill"
    (tmp_path / f"notes/a{suffix}").write_text(form.replace("{}", word))
    update_index([tmp_path / "notes"], tmp_path / "ix")
    index = open_index(tmp_path / "ix")
    assert len(index.search("windmill", 3)) == 1
    assert list(read_passages([tmp_path / "notes"]))
