"""Tables of eleven more kinds, and questions that are computed over them, with right answers written by hand."""

from __future__ import annotations

FILES: dict[str, str] = {
    "medals.md": (
        "# Medal table\n"
        "\n"
        "| Rank | Nation | Gold | Silver | Bronze | Total |\n"
        "|---|---|---|---|---|---|\n"
        "| 1 | Avaria | 9 | 4 | 5 | 18 |\n"
        "| 2 | Belmar | 7 | 7 | 3 | 17 |\n"
        "| 3 | Corland | 7 | 2 | 8 | 17 |\n"
        "| 4 | Dremia | 3 | 5 | 5 | 13 |\n"
        "| 5 | Estovia | 0 | 1 | 2 | 3 |\n"
    ),
    "roster.html": (
        "<html><body><h1>Ward roster</h1><table>\n"
        '<tr><th rowspan="2">Nurse</th><th colspan="2">Hours</th><th colspan="2">Shifts</th></tr>\n'
        "<tr><th>Week 1</th><th>Week 2</th><th>Week 1</th><th>Week 2</th></tr>\n"
        "<tr><td>Ida</td><td>38</td><td>40</td><td>5</td><td>5</td></tr>\n"
        "<tr><td>Jon</td><td>20</td><td>24</td><td>3</td><td>3</td></tr>\n"
        "<tr><td>Kai</td><td>38</td><td>32</td><td>5</td><td>4</td></tr>\n"
        "<tr><td>Liv</td><td>0</td><td>36</td><td>0</td><td>4</td></tr></table></body></html>\n"
    ),
    "finances.html": (
        "<html><body><h1>Club finances</h1><table><tr><th>Item</th><th>2022</th><th>2023</th><th>2024</th></tr>\n"
        "<tr><td>Membership fees</td><td>12,400</td><td>13,150</td><td>13,900</td></tr>\n"
        "<tr><td>Grants</td><td>5,000</td><td>0</td><td>2,500</td></tr>\n"
        "<tr><td>Rent</td><td>(6,200)</td><td>(6,400)</td><td>(6,900)</td></tr>\n"
        "<tr><td>Travel</td><td>(1,750)</td><td>(3,020)</td><td>(2,480)</td></tr>\n"
        "<tr><td>Repairs</td><td>(900)</td><td>(150)</td><td>(4,300)</td></tr>\n"
        "<tr><td>Result</td><td>8,550</td><td>3,580</td><td>2,720</td></tr></table></body></html>\n"
    ),
    "water-samples.csv": (
        "Sample,Taken on,Station,Nitrate (mg/l),pH,Remark\n"
        "W-01,2024-05-02,Mill weir,4.2,7.1,\n"
        "W-02,2024-05-02,Bridge,<0.1,7.4,below limit\n"
        "W-03,2024-05-16,Mill weir,n/a,6.9,bottle broken\n"
        "W-04,2024-05-16,Bridge,0.8,7.2,\n"
        "W-05,2024-06-06,Harbour,12.5,6.8,recheck\n"
        "W-06,2024-06-06,Mill weir,3.9,,\n"
    ),
    "branches.csv": (
        "Branch,Growth,Margin,Staff,Opened\n"
        "Oslo,12.5 %,31 %,14,1998\n"
        "Bergen,-3.2 %,28 %,9,2005\n"
        "Hamar,0 %,,4,2019\n"
        "Molde,8.75 %,25.5 %,6,2011\n"
    ),
    "bicycle-parts.csv": (
        "Level,Part no,Part,Parent,Quantity,Weight (g),Unit cost\n"
        "0,B-1,Bicycle,,1,,\n"
        "1,B-10,Wheel,Bicycle,2,1200,45.00\n"
        "2,B-11,Rim,Wheel,1,600,18.50\n"
        "2,B-12,Spoke,Wheel,32,6,0.25\n"
        "1,B-20,Frame,Bicycle,1,2100,160.00\n"
        "2,B-21,Tube,Frame,4,400,12.00\n"
        "1,B-30,Saddle,Bicycle,1,350,22.00\n"
    ),
    "medication.csv": (
        "Medication,Patient,Dose,Times a day,Started,Route\n"
        "Amoxil,Greta Holm,500 mg,3,2024-02-01,oral\n"
        "Ibuprofen,Greta Holm,400 mg,2,2024-02-03,oral\n"
        "Metformin,Otto Falk,850 mg,2,2023-11-20,oral\n"
        "Insulin,Otto Falk,12 IU,4,2024-01-08,injection\n"
        "Aspirin,Lina Roth,0.1 g,1,2022-06-15,oral\n"
        "Heparin,Lina Roth,5000 IU,1,,injection\n"
        "Paracetamol,Ben Ode,1 g,3,2024-02-10,oral\n"
    ),
    "hotels.csv": (
        "Hotel,Town,Price per night,Rooms,Pets allowed,Stars\n"
        "Linde,Brugg,120 €,14,yes,3\n"
        "Krone,Brugg,95 €,40,no,3\n"
        "Adler,Sempach,210 €,22,yes,4\n"
        "Post,Sempach,88 €,9,no,2\n"
        "Bären,Wolhusen,140 €,31,yes,4\n"
        "Rössli,Wolhusen,,18,,3\n"
    ),
    "invoices.csv": (
        "Invoice,Client,Issued,Due,Amount,Paid\n"
        '1001,Müller & Co,03/01/2024,17/01/2024,"1,200.00",yes\n'
        "1002,Brandt,28/01/2024,11/02/2024,450.50,no\n"
        "1003,Müller & Co,02/02/2024,16/02/2024,-200.00,yes\n"
        '1004,Kessler,15/02/2024,29/02/2024,"2,310.00",no\n'
        "1005,Brandt,04/03/2024,18/03/2024,99.50,yes\n"
    ),
    "loans.csv": (
        "Loan,Bank,Sum,Interest,From,To,Repaid\n"
        'L1,Aro,"€120,000",2.9 %,2019-03-01,2029-03-01,no\n'
        'L2,Bex,"€45,000",4.25 %,2021-07-15,2026-07-15,no\n'
        'L3,Aro,"€8,500",0 %,2017-01-10,2020-01-10,yes\n'
        'L4,Cid,"€60,000",3.1 %,2022-11-30,2032-11-30,no\n'
    ),
    "species.csv": (
        "Reserve,Species,Adults,Young,Surveyed,Threat\n"
        "Moor,Curlew,14,6,2022-05-11,red\n"
        "Moor,Snipe,22,0,2022-05-12,amber\n"
        "Fen,Curlew,3,n/a,2023-05-09,red\n"
        "Fen,Bittern,2,1,2023-06-01,red\n"
        "Dune,Tern,140,88,2023-06-20,green\n"
        "Dune,Snipe,5,2,2022-06-02,amber\n"
    ),
}
COMPUTED = (
    ("How many medications does Otto Falk take?", "2"),
    ("Which patient has the most medications?", "Greta Holm, Otto Falk, Lina Roth"),
    ("How many medications are given by injection?", "2"),
    ("What is the total dose?", ""),
    ("Which medication has the highest dose?", ""),
    ("How many medications were started in February 2024?", "3"),
    ("How many medications have no start date?", "1"),
    ("Which medications were started before 2024?", "Metformin, Aspirin"),
    ("What is the dose of Aspirin?", "0.1 g"),
    ("Which nation won the most gold medals?", "Avaria"),
    ("Which nation has the second highest gold?", "Belmar, Corland"),
    ("How many nations won at least 5 silver medals?", "2"),
    ("How many bronze medals were won in total?", "23"),
    ("How many more gold medals did Avaria win than Dremia?", "6"),
    ("How many nations won more than 3 gold and fewer than 5 silver medals?", "2"),
    ("What is the average number of gold medals?", "5.2"),
    ("Which nation has the lowest total?", "Estovia"),
    ("How many medals did Belmar win?", "17"),
    ("How many nations have 17 medals?", "2"),
    ("Which part is the heaviest?", "Frame"),
    ("How many parts are there?", "7"),
    ("How many parts have the parent Bicycle?", "3"),
    ("What is the total weight of the parts of level 1?", "3650 g"),
    ("What is the total weight of the parts of level 1 in kg?", "3.65 kg"),
    ("What is the average unit cost?", "42.9583"),
    ("Which part has the second highest unit cost?", "Wheel"),
    ("How many parts weigh more than 1 kg?", "2"),
    ("How many parts weigh less than 500 g?", "3"),
    ("How much more does the frame cost than the wheel?", "115"),
    ("Which parts weigh between 300 and 700 g?", "Rim, Tube, Saddle"),
    ("What is the average nitrate?", ""),
    ("What is the highest nitrate?", ""),
    ("What is the average nitrate at the Mill weir?", "4.05 mg/l"),
    ("How many samples were taken in May 2024?", "4"),
    ("How many samples were taken at the Bridge?", "2"),
    ("What is the average pH?", "7.08"),
    ("Which sample has the lowest pH?", "W-05"),
    ("How many samples have no pH?", "1"),
    ("How many samples have a nitrate above 3?", ""),
    ("How many samples have a pH below 7?", "2"),
    ("How many samples were taken between 10 May 2024 and 10 June 2024?", "4"),
    ("How many samples have a remark?", "3"),
    ("Which item had the highest 2024?", "Membership fees"),
    ("Which item had the lowest value in 2024?", "Rent"),
    ("What is the sum of 2022?", "8550"),
    ("How many hours did Ida work in week 2?", "40"),
    ("Which nurse has the most hours in week 1?", "Ida, Kai"),
    ("What is the total of hours in week 2?", "132"),
    ("How many nurses are there?", "4"),
    ("What is the average number of shifts in week 1?", "3.25"),
    ("What is the average growth?", "4.5125%"),
    ("Which branch has the highest growth?", "Oslo"),
    ("How many branches have a growth above 10 %?", "1"),
    ("How many branches have a growth of more than 5 percent?", "2"),
    ("How many branches have a negative growth?", "1"),
    ("Which branches have a margin of at least 28 %?", "Oslo, Bergen"),
    ("What is the difference in margin between Oslo and Molde?", "5.5%"),
    ("What is the median growth?", "4.375%"),
    ("How many branches opened after 2000?", "3"),
    ("How many staff are there in total?", "33"),
    ("Which branch opened last?", "Hamar"),
    ("What share of the staff works in Oslo?", "42.42%"),
    ("Which branches have a margin above 30 % or a growth above 8 %?", "Oslo, Molde"),
    ("How many branches have a margin above 25.5 %?", "2"),
    ("How many hotels are in Brugg?", "2"),
    ("Which hotel is the cheapest?", "Post"),
    ("Which hotel is the second most expensive?", "Bären"),
    ("What is the average price per night?", "130.6 €"),
    ("How many hotels have no price?", "1"),
    ("How many rooms do the hotels in Sempach have in total?", "31"),
    ("Which hotels cost less than 100 €?", "Krone, Post"),
    ("Which town has the most rooms?", "Brugg"),
    ("How many hotels have at least 3 stars and at most 20 rooms?", "2"),
    ("How many hotels have 4 stars or more than 35 rooms?", "3"),
    ("Which hotels in Wolhusen have 3 stars?", "Rössli"),
    ("How many hotels cost between 90 and 150 euros?", "3"),
    ("What is the median price per night?", "120 €"),
    ("How many hotels cost more than 100 dollars?", ""),
    ("Which client has the highest total amount?", "Kessler"),
    ("How many invoices are unpaid?", "2"),
    ("How many invoices were issued in February 2024?", "2"),
    ("How many invoices were due before 16 February 2024?", "2"),
    ("What is the total amount of unpaid invoices?", "2760.5"),
    ("Which invoice has the lowest amount?", "1003"),
    ("What is the total amount per client?", "Müller & Co: 1000; Brandt: 550; Kessler: 2310"),
    ("When was the last invoice issued?", "2024-03-04"),
    ("What is the amount of invoice 1004?", "2,310.00"),
    ("What share of the invoices is paid?", "60%"),
    ("Which species has the most adults?", "Tern"),
    ("How many curlews are there?", ""),
    ("What is the total of young?", "97"),
    ("Which reserve has the fewest adults?", "Fen"),
    ("How many adults per reserve?", "Moor: 36; Fen: 5; Dune: 145"),
    ("How many adults were surveyed in June?", "147"),
    ("What is the average number of adults?", "31"),
    ("Which bank has the highest total sum?", "Aro"),
    ("How many loans are not repaid?", "3"),
    ("How many loans have an interest above 3 %?", "2"),
    ("How many loans have no interest?", "1"),
    ("Which loan has the lowest interest?", "L3"),
    ("What is the average interest?", "2.5625%"),
    ("How many loans are from Aro or Bex and are not repaid?", "2"),
    ("What share of the loans is repaid?", "25%"),
)
"""Questions with their right answers, empty if only a refusal is right."""
